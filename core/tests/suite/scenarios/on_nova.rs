//! A host whose workloads are in a cloud.

use ringfence_core::*;

use super::falls_silent;
use ringfence_world::Cloud;
use ringfence_world::World;
use ringfence_world::plans::*;

pub fn on_nova(plan: FrozenPlan, servers: usize, policy: EvacuationPolicy) -> World {
    let policy = SegmentPolicy {
        evacuation: policy,
        ..ringfence_world::plans::policy()
    };
    let mut world = World::new(plan, policy);
    world.state.host.backend = Backend::Nova;
    world.state.host.cloud = Some("east".to_owned());
    world.cloud = Cloud::with(servers);
    falls_silent(&mut world);
    world
}

/// A world with a host that is FENCED by power and marked down.
pub fn fenced(servers: usize, policy: EvacuationPolicy) -> World {
    let mut world = on_nova(power_plan(), servers, policy);
    world.fence().unwrap();
    world.work_off();
    world.take_log();
    world
}

pub fn manual() -> EvacuationPolicy {
    EvacuationPolicy::default()
}

pub fn automatic() -> EvacuationPolicy {
    EvacuationPolicy {
        automatic: true,
        ..EvacuationPolicy::default()
    }
}

/// A host whose evacuation has asked what is there, and has told workers what to move.
pub fn evacuating(servers: usize, policy: EvacuationPolicy) -> World {
    let mut world = fenced(servers, policy);
    world.evacuate().unwrap();
    world.work(2);
    world.work(3);
    world
}
