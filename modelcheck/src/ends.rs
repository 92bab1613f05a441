//! From every state time alone ends what is under way (L1).

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use chrono::TimeDelta;
use parking_lot::Mutex;
use ringfence_core::{OperationStatus, fence_due};
use ringfence_world::Machine;

use crate::pack::pack_host;
use crate::{Life, Wrong};

/// More ticks than any operation of a configuration can need.
const MAX_TICKS: usize = 400;
/// So that threads seldom wait for each other.
const SHELVES: usize = 16;

/// What is known to end, by what the rules know: nothing else is asked while only time passes.
#[derive(Debug, Default)]
pub(crate) struct Ends([Mutex<HashSet<u64>>; SHELVES]);

impl Ends {
    /// What does not end, if it does not.
    pub fn check(&self, life: &Life) -> Option<Wrong> {
        let mut key = key(life);
        if self.knows(key) {
            return None;
        }
        let mut way = Vec::new();
        let mut life = alone(life);
        for _ in 0..MAX_TICKS {
            way.push(key);
            if has_ended(&life) {
                way.into_iter().for_each(|key| self.note(key));
                return None;
            }
            let Some(wake_at) = life.world.wake_at else {
                return Some(endless(&life, "nothing wakes it"));
            };
            let now = life.world.now;
            let by = (wake_at - now).max(TimeDelta::zero());
            life.world.now += by;
            life.world.tick();
            life.world.sent.clear();
            if life.world.wake_at.is_some_and(|at| at <= life.world.now) {
                return Some(endless(&life, "a tick leaves something to do"));
            }
            key = self::key(&life);
            if self.knows(key) {
                way.into_iter().for_each(|key| self.note(key));
                return None;
            }
        }
        Some(endless(&life, "it goes on and on"))
    }

    /// How many are known.
    pub fn count(&self) -> usize {
        self.0.iter().map(|shelf| shelf.lock().len()).sum()
    }

    fn knows(&self, key: u64) -> bool {
        self.shelf(key).lock().contains(&key)
    }

    fn note(&self, key: u64) {
        self.shelf(key).lock().insert(key);
    }

    fn shelf(&self, key: u64) -> &Mutex<HashSet<u64>> {
        let place = usize::from(key.to_le_bytes()[0]) % SHELVES;
        &self.0[place]
    }
}

fn key(life: &Life) -> u64 {
    let mut hasher = DefaultHasher::new();
    pack_host(life).hash(&mut hasher);
    hasher.finish()
}

fn has_ended(life: &Life) -> bool {
    let is_open = life
        .world
        .state
        .operation
        .as_ref()
        .is_some_and(|live| live.status == OperationStatus::Running || live.restart_at.is_some());
    !is_open && fence_due(&life.world.state).is_none()
}

/// The end with nothing but an engine: no worker acts, and the host says nothing.
fn alone(life: &Life) -> Life {
    let mut life = life.clone();
    life.world.sent.clear();
    life.world.site.machine = Machine::Crashed;
    life
}

fn endless(life: &Life, what: &str) -> Wrong {
    let live = life.world.state.operation.as_ref();
    let detail = live.map(|live| live.detail.clone()).unwrap_or_default();
    Wrong::Endless(format!("{what}: {detail}"))
}
