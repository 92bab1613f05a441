//! How many tasks of a stage may begin: so many at one time, moves so many within a second, and those whose turn it is among the moves of all hosts.

use chrono::TimeDelta;

use crate::decide::Draft;
use crate::decide::draft::after_s;
use crate::guard::{Guard, on};
use crate::safeguard::LOOK_AGAIN_S;
use crate::{Operation, Task, TaskStatus, Timestamp};

const PER: TimeDelta = TimeDelta::seconds(1);

/// How many more tasks of a stage may begin now.
pub(super) struct Pace {
    /// Of those that may be under way at one time; `None` where all have begun with their stage but those that are held back.
    places: Option<usize>,
    /// Of those that may begin within a second.
    left_of_second: usize,
    /// Of those whose turn it is; `None` where they wait for no turn.
    turns: Option<u32>,
}

impl Pace {
    pub fn of(draft: &mut Draft, operation: &Operation, stage: &[Task], at_once: Option<u32>) -> Self {
        let running = stage.iter().filter(|task| task.status == TaskStatus::Running);
        let left_of_second = match operation.policy.evacuation.per_second {
            0 => usize::MAX,
            per_second => left_of_second(draft, stage, per_second),
        };
        // By what the segment says now: a change that is made while many hosts are evacuated is meant for them.
        let has_turns = draft.state.policy.evacuation.has_turns() && on(Guard::MovesTakeTurns);
        Self {
            turns: has_turns.then_some(draft.turns),
            places: at_once.map(|limit| count(limit).saturating_sub(running.count())),
            left_of_second,
        }
    }

    pub fn has_room(&self) -> bool {
        self.places.is_some_and(|places| places > 0) && self.left_of_second > 0 && self.turns != Some(0)
    }

    pub fn begun(&mut self) {
        self.places = self.places.map(|places| places - 1);
        self.left_of_second -= 1;
        self.turns = self.turns.map(|turns| turns - 1);
    }

    pub fn ended(&mut self) {
        self.places = self.places.map(|places| places + 1);
    }

    /// What is left of the turns is for other stages. Those that wait are looked at again: what their segment says may change.
    pub fn end(self, draft: &mut Draft, stage: &[Task]) {
        let Some(turns) = self.turns.filter(|_| self.places.is_some()) else {
            return;
        };
        draft.turns = turns;
        if stage.iter().any(|task| task.status == TaskStatus::Pending) {
            draft.wake(after_s(draft.now, LOOK_AGAIN_S));
        }
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
