//! Histories that once opened a gate over a running host, as short scripts; and a part of the search that finds such histories.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod boots;
mod clocks;
mod commands;
mod power_back;
mod search;
mod signs_of_life;
mod silence;
mod storage;

use ringfence_core::{FailureState, FrozenPlan, SegmentPolicy};
use ringfence_world::World;

/// A host that was seen UP ten seconds ago and has just been reported UNREACHABLE.
fn lost(plan: FrozenPlan, policy: SegmentPolicy) -> World {
    let mut world = World::new(plan, policy);
    world.see(FailureState::Up).unwrap();
    world.pass(10_000);
    world.see(FailureState::Unreachable).unwrap();
    world.take_log();
    world
}

/// The last message is claimed and carried out, and its result arrives a second later.
fn work(world: &mut World) {
    let job = world.deliver(world.sent.len() - 1, "worker-1").unwrap();
    assert!(world.command(job));
    world.pass(1_000);
    world.complete(job);
}

/// Whether the evacuate gate is open.
#[track_caller]
fn is_open(world: &World) -> bool {
    assert_eq!(world.violation, None, "{}", world.log.join("\n"));
    world.gates().evacuate.allowed
}
