//! How many tasks of a stage may begin: so many at one time, and moves so many within a second.

use chrono::TimeDelta;

use crate::decide::Draft;
use crate::{Operation, Task, TaskStatus, Timestamp};

const PER: TimeDelta = TimeDelta::seconds(1);

/// How many more tasks of a stage may begin now.
pub(super) struct Pace {
    /// Of those that may be under way at one time; `None` where all have begun with their stage but those that are held back.
    places: Option<usize>,
    /// Of those that may begin within a second.
    left_of_second: usize,
}

impl Pace {
    pub fn of(draft: &mut Draft, operation: &Operation, stage: &[Task], at_once: Option<u32>) -> Self {
        let running = stage.iter().filter(|task| task.status == TaskStatus::Running);
        let left_of_second = match operation.policy.evacuation.per_second {
            0 => usize::MAX,
            per_second => left_of_second(draft, stage, per_second),
        };
        Self {
            places: at_once.map(|limit| count(limit).saturating_sub(running.count())),
            left_of_second,
        }
    }

    pub fn has_room(&self) -> bool {
        self.places.is_some_and(|places| places > 0) && self.left_of_second > 0
    }

    pub fn begun(&mut self) {
        self.places = self.places.map(|places| places - 1);
        self.left_of_second -= 1;
    }

    pub fn ended(&mut self) {
        self.places = self.places.map(|places| places + 1);
    }
}

/// Looks again a second after the first of those began that have begun within the last second.
fn left_of_second(draft: &mut Draft, stage: &[Task], per_second: u32) -> usize {
    let began = |task: &Task| task.round().first().map(|attempt| attempt.started_at);
    let now = draft.now;
    let is_recent = |at: &Timestamp| now - *at < PER;
    let recent: Vec<Timestamp> = stage.iter().filter_map(began).filter(is_recent).collect();
    if let Some(first) = recent.iter().min() {
        draft.wake(*first + PER);
    }
    count(per_second).saturating_sub(recent.len())
}

fn count(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
