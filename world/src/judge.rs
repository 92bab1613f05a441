//! What must never be, whatever happens. The judge is the physical world: what the rules hold for true is never asked, only what they
//! say to the outside.
//!
//! What no rule can know is excused: that a person has switched the host on, until a sign of life of that boot has arrived; and
//! what a person has said that was not so.

use ringfence_core::{
    Decision, Effect, EventKind, HostState, Operation, OperationKind, ProofKind, Resource, gates,
};

use crate::site::Cause;
use crate::world::World;

/// What must never be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Violation {
    /// The evacuate gate is open over a host that may run or write.
    OpenGate,
    /// A host became FENCED that may run or write.
    FalseFenced,
    /// A workload was started elsewhere while the host may run or write.
    UnsafeMove,
    /// The backend was told that nothing runs on the host any more, or to detach its volumes, while the host may run or write.
    Misled,
    /// A boot that was cut off while it ran has its storage back.
    StorageToCutBoot,
    /// The schedule gate is open over a host from which a worker has taken something that is on no record.
    Forgotten,
    /// An operation was live when its engine lost the database, and nothing goes on with what it had begun.
    Stranded,
    /// A host became UNFENCED whose power is off by Ringfence's own command.
    UnfencedWithoutPower,
}

/// Judges what a decision tells the world.
pub(crate) fn decision(world: &mut World, decision: &Decision) {
    let events = decision.effects.iter().filter_map(|effect| match effect {
        Effect::Event(event) => Some(event.kind),
        Effect::Dispatch(_) | Effect::Note(_) => None,
    });
    for kind in events {
        let violation = match kind {
            EventKind::HostFenced if world.site.harm() && !is_excused(world, &decision.state) => {
                Violation::FalseFenced
            }
            EventKind::HostUnfenced if world.site.is_cut(Resource::Power) && !world.is_hearsay => {
                Violation::UnfencedWithoutPower
            }
            _ => continue,
        };
        world.violation = world.violation.or(Some(violation));
    }
}

/// Judges the present moment.
pub(crate) fn now(world: &mut World) {
    let is_open = || world.is_led() && gates(&world.state, world.now).evacuate.allowed;
    let violation = if world.site.released_to.is_some() && !world.is_hearsay {
        Violation::StorageToCutBoot
    } else if world.site.harm() && is_open() && !is_excused(world, &world.state) {
        Violation::OpenGate
    } else if has_forgotten(world) {
        Violation::Forgotten
    } else if world.cloud.started.iter().any(|start| !start.was_safe) {
        Violation::UnsafeMove
    } else if world.cloud.was_misled {
        Violation::Misled
    } else {
        return;
    };
    world.violation = world.violation.or(Some(violation));
}

/// Judges an engine that has begun with the record of the host alone. `lost` was live before.
pub(crate) fn resumed(world: &mut World, lost: &Operation) {
    let host = &world.state.host;
    let is_due = match lost.kind() {
        OperationKind::Fence => !lost.is_held_by_brake(),
        OperationKind::Rejoin => host.fence.is_some() || !host.applied.is_empty(),
        OperationKind::Evacuation => true,
    };
    let mut live = world
        .state
        .operation
        .iter()
        .filter(|operation| operation.status.is_live());
    if is_due && live.next().is_none() {
        world.violation = world.violation.or(Some(Violation::Stranded));
    }
}

fn has_forgotten(world: &World) -> bool {
    let standing = &world.state.host.applied.fencing;
    let mut taken = world.site.taken();
    let is_forgotten = taken.any(|name| standing.iter().all(|standing| standing.method.name != name));
    is_forgotten && world.is_led() && gates(&world.state, world.now).schedule.allowed
}

pub(crate) fn is_excused(world: &World, state: &HostState) -> bool {
    let is_unheard_of = world.site.cause == Cause::Stranger && world.told_boot < world.site.begun_with
        || world
            .site
            .meddled_at()
            .is_some_and(|at| world.told_alive_at <= at);
    let by_word = state.host.fence.iter().flat_map(|fence| fence.standing());
    let rests_on_a_word = by_word.into_iter().any(|proof| proof.kind == ProofKind::Operator);
    is_unheard_of || (rests_on_a_word && world.is_hearsay)
}
