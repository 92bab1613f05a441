//! Rejoins.

mod boots;
mod by_hand;
mod in_order;
mod off_beats_on;
mod taken;

use ringfence_world::World;
use ringfence_world::plans::*;

use super::lost;

/// A host that is FENCED by power.
fn off() -> World {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.work(0);
    world.take_log();
    world
}

/// A host that is FENCED by storage and network, and runs on in the boot that was cut off.
fn cut_off() -> World {
    let mut world = lost(cut_off_plan());
    world.fence().unwrap();
    world.work_off();
    world.take_log();
    world
}
