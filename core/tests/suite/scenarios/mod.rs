//! Short scripts with exact logs. A line has the seconds since the start, then an event, a message to a worker (`send`), or a note in
//! the audit trail.

mod ailing;
mod alarming;
mod attempts;
mod cancelling;
mod dumping;
mod dumping_proves;
mod evacuating;
mod evacuating_meanwhile;
mod falling_silent;
mod fencing;
mod flapping;
mod following;
mod forgetting;
mod holding;
mod left_off;
pub mod on_nova;
mod people;
mod rejoining;
mod returning;
mod rising;
mod suspended;
mod time;
mod told;
mod waiting;
mod weaker;

use ringfence_core::{Boot, FailureState, FrozenPlan, OldBoot, SegmentPolicy, Timestamp};

use ringfence_world::World;

/// A host that the monitor has heard until now, and hears no more.
fn lost(plan: FrozenPlan) -> World {
    lost_under(plan, ringfence_world::plans::policy())
}

fn lost_under(plan: FrozenPlan, policy: SegmentPolicy) -> World {
    let mut world = World::new(plan, policy);
    falls_silent(&mut world);
    world
}

/// The monitor hears the host for the last time five seconds before the script begins.
fn falls_silent(world: &mut World) {
    world.pass_unseen(-5_000);
    let last = boot("boot-1", world.site.booted_at);
    world.say("monitor", FailureState::Up, 0, Some(last)).unwrap();
    world.pass_unseen(5_000);
    world.see(FailureState::Unreachable).unwrap();
    world.take_log();
}

/// A boot as a host reports it.
pub fn boot(id: &str, booted_at: Timestamp) -> Boot {
    Boot {
        id: Some(id.to_owned()),
        booted_at: Some(booted_at),
    }
}

/// The monitor hears the host again, and the host reports its boot.
#[track_caller]
fn comes_back(world: &mut World) {
    world.site.link("monitor", true);
    assert!(world.site.is_heard_by("monitor"), "{:?}", world.site.machine);
    world.told_boot = world.site.boot;
    world.told_alive_at = world.real;
    let name = format!("boot-{}", world.site.boot);
    let boot = boot(&name, world.site.booted_at);
    world.say("monitor", FailureState::Up, 0, Some(boot)).unwrap();
}

/// The host's kernel crashes, the machine starts again by itself, and the monitor hears it five seconds later.
#[track_caller]
fn reboots(world: &mut World) {
    world.site.crash(true);
    world.pass(5_000);
    comes_back(world);
}

/// Why the host's boot may not get back what was taken from the host.
fn old_boot(world: &World) -> Option<OldBoot> {
    world.state.host.old_boot(world.state.clock_set_at)
}
