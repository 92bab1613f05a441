//! Short scripts with exact logs. A line is seconds since the start, then an event, a message to a worker (`send`), or a
//! note for the audit trail.

mod cancelling;
mod evacuating;
mod evacuating_meanwhile;
mod falling_silent;
mod fencing;
mod on_nova;
mod people;
mod rejoining;
mod returning;
mod rising;
mod time;
mod waiting;

use ringfence_core::{FailureState, FrozenPlan, SegmentPolicy};

use ringfence_world::World;

/// A host that has just been reported UNREACHABLE.
fn lost(plan: FrozenPlan) -> World {
    lost_under(plan, ringfence_world::plans::policy())
}

fn lost_under(plan: FrozenPlan, policy: SegmentPolicy) -> World {
    let mut world = World::new(plan, policy);
    world.see(FailureState::Unreachable).unwrap();
    world.take_log();
    world
}

/// Compares what was logged since the last call.
#[track_caller]
fn expect(world: &mut World, lines: &[&str]) {
    let log = world.take_log();
    assert_eq!(log, lines, "\ngot:\n{}\n", log.join("\n"));
}
