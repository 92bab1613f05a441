//! Several hosts, each decided for alone, and the permits that a database counts for them.

use ringfence_core::*;
use ringfence_world::World;
use ringfence_world::plans::power_plan;

/// Some hosts.
pub struct Site {
    pub hosts: Vec<World>,
    /// The names of the permits that were taken and are kept.
    pub kept: Vec<String>,
}

/// Fences that no person asked for, and that a worker may carry out.
pub fn is_under_way(world: &World) -> bool {
    begun_at(world).is_some()
}

/// When a worker was first told of such a fence.
pub fn begun_at(world: &World) -> Option<Timestamp> {
    let live = world
        .state
        .operation
        .as_ref()
        .filter(|live| live.status == OperationStatus::Running);
    let is_its = |live: &&Operation| {
        let cause = live.fence().map(|fence| fence.cause);
        cause.is_some_and(|cause| cause != Cause::Request) && live.round == 0
    };
    let attempts = live.filter(is_its).into_iter().flat_map(Operation::attempts);
    attempts.map(|attempt| attempt.started_at).min()
}

/// A worker claims the newest attempt and commands its device, and is not heard of again.
pub fn command_newest(world: &mut World) {
    let last = world.sent.len().checked_sub(1);
    if let Some(job) = last.and_then(|last| world.deliver(last, "w").ok()) {
        world.command(job);
    }
}

impl Site {
    /// So many hosts that are fenced by their power.
    pub fn new(count: usize, policy: &SegmentPolicy) -> Self {
        let host = || {
            let mut world = World::new(power_plan(), policy.clone());
            world.restarts = false;
            // It is copied before each change.
            world.records = false;
            world
        };
        Self {
            hosts: std::iter::repeat_with(host).take(count).collect(),
            kept: Vec::new(),
        }
    }

    /// Lets something happen to a host. Nothing of it has happened if the database has no permit for what it came to.
    /// Returns whether it had.
    pub fn change(&mut self, at: usize, change: impl FnOnce(&mut World)) -> bool {
        let before = self.hosts[at].clone();
        change(&mut self.hosts[at]);
        let held = |world: &World| -> Vec<(OperationId, Permit)> {
            let live = world.state.operation.iter();
            live.flat_map(|live| live.permits().iter().map(|permit| (live.id, permit.clone())))
                .collect()
        };
        let had = held(&before);
        let taken = held(&self.hosts[at]).into_iter();
        let taken: Vec<Permit> = taken
            .filter(|of_operation| !had.contains(of_operation))
            .map(|(_, permit)| permit)
            .collect();
        let all: Vec<Permit> = self
            .hosts
            .iter()
            .flat_map(held)
            .map(|(_, permit)| permit)
            .collect();
        let are_there = taken.iter().all(|new| {
            let others = if new.is_kept {
                self.kept.iter().filter(|name| **name == new.of).count()
            } else {
                all.iter().filter(|permit| permit.of == new.of).count() - 1
            };
            others < new.at_most as usize
        });
        if !are_there {
            self.hosts[at] = before;
            return false;
        }
        let kept = taken.into_iter().filter(|new| new.is_kept);
        self.kept.extend(kept.map(|new| new.of));
        true
    }
}
