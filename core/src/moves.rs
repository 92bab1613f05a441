//! Moves of many hosts at one time: how many may be under way, how many may begin in a minute, and whose turn comes first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    Attempt, EvacuationPolicy, HostId, Operation, OperationStatus, Problems, SegmentId, Stage, StepKind,
    Task, TaskStatus, Timestamp,
};

/// Seconds over which the moves that have begun are counted.
pub const BEGUN_WITHIN_S: i64 = 60;

/// Seconds by which two engines' clocks may differ.
const CLOCKS_DIFFER_S: i64 = 2;

/// How many moves there may be, of all hosts of a segment or of a platform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MoveLimits {
    /// Under way at one time, 1 to 10,000; `None`: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u32>,
    /// Begun within 60 s, 1 to 10,000; `None`: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<u32>,
}

impl MoveLimits {
    pub(crate) fn check(self, field: &str, problems: &mut Problems) {
        let Self { at_once, per_minute } = self;
        if at_once.or(per_minute).is_none() {
            problems.add(field, "bounds nothing; at_once or per_minute is needed");
        }
        for (name, value) in [("at_once", at_once), ("per_minute", per_minute)] {
            if let Some(value) = value.filter(|value| !(1..=10_000).contains(value)) {
                let allowed = format!("is {value}; 1 to 10,000 is allowed");
                problems.add(format!("{field}.{name}"), allowed);
            }
        }
    }

    /// How many more may begin.
    fn room(self, count: Count) -> u32 {
        let left =
            |limit: Option<u32>, taken: u32| limit.map_or(u32::MAX, |limit| limit.saturating_sub(taken));
        left(self.at_once, count.under_way).min(left(self.per_minute, count.begun))
    }
}

/// The moves of one evacuation, as others have to know them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveQueue {
    /// The platform that moves them.
    pub platform: String,
    /// Those that are under way.
    pub under_way: u32,
    /// Those of them that no worker has been told yet: they wait until nothing else can move the workload, and begin at any moment.
    pub untold: u32,
    /// How many began in each second of the last minute in which one began.
    pub begun: BTreeMap<i64, u32>,
    /// Those that wait for their turn, in their order: a priority, and how many have it.
    pub waiting: Vec<(i64, u32)>,
    /// How many of them may begin by what is said of each host of the segment.
    pub room: u32,
}

impl MoveQueue {
    /// With those that may begin at any moment. What began after `now` did so before the clock was set back.
    fn begun_within(&self, now: Timestamp) -> u32 {
        let now = now.timestamp();
        let within = self.begun.range(now - BEGUN_WITHIN_S..=now + CLOCKS_DIFFER_S);
        within.map(|(_, moves)| moves).sum::<u32>() + self.untold
    }

    /// As if so many more had begun.
    fn with_untold(&self, moves: u32) -> Self {
        Self {
            under_way: self.under_way + moves,
            untold: self.untold + moves,
            ..self.clone()
        }
    }

    /// How many wait for their turn.
    #[must_use]
    pub fn all_waiting(&self) -> u32 {
        self.waiting.iter().map(|(_, moves)| moves).sum()
    }
}

impl Operation {
    /// Its moves, if it is an evacuation.
    #[must_use]
    pub fn move_queue(&self) -> Option<MoveQueue> {
        self.evacuation()?;
        let mut queue = MoveQueue {
            platform: self.platform.as_ref()?.label(),
            begun: begun(self.tasks().filter(|task| is_move(task))),
            under_way: count(self.tasks().filter(|task| is_under_way(task))),
            untold: count(
                self.tasks()
                    .filter(|task| is_under_way(task) && told(task).is_none()),
            ),
            ..MoveQueue::default()
        };
        let stage = self.stages.iter().find(|stage| stage.has_turns());
        if let Some(stage) = stage.filter(|_| self.status == OperationStatus::Running) {
            let running = count(stage.tasks.iter().filter(|task| is_under_way(task)));
            queue.room = stage.at_once.unwrap_or(u32::MAX).saturating_sub(running);
            queue.waiting = self.waiting(stage);
        }
        Some(queue)
    }

    fn waiting(&self, stage: &Stage) -> Vec<(i64, u32)> {
        let pending = stage
            .tasks
            .iter()
            .filter(|task| task.status == TaskStatus::Pending);
        let mut waiting: Vec<(i64, u32)> = Vec::new();
        for workload in pending.filter_map(Task::workload) {
            let priority = self.policy.evacuation.priority(workload);
            match waiting.last_mut().filter(|(last, _)| *last == priority) {
                Some((_, moves)) => *moves += 1,
                None => waiting.push((priority, 1)),
            }
        }
        waiting
    }
}

impl Stage {
    /// Whether its tasks begin one by one, and some have yet to.
    pub(crate) fn has_turns(&self) -> bool {
        self.at_once.is_some() && self.started_at.is_some() && !self.is_over()
    }
}

fn is_move(task: &Task) -> bool {
    task.kind() == StepKind::Move
}

fn is_under_way(task: &Task) -> bool {
    is_move(task) && task.status == TaskStatus::Running
}

/// The first attempt of which a worker was told that moves anything.
fn told(task: &Task) -> Option<&Attempt> {
    task.attempts.iter().find(|attempt| !attempt.only_looks())
}

fn count<'a>(tasks: impl Iterator<Item = &'a Task>) -> u32 {
    u32::try_from(tasks.count()).unwrap_or(u32::MAX)
}

fn begun<'a>(moves: impl Iterator<Item = &'a Task>) -> BTreeMap<i64, u32> {
    let mut begun: BTreeMap<i64, u32> = BTreeMap::new();
    for attempt in moves.filter_map(told) {
        *begun.entry(attempt.started_at.timestamp()).or_default() += 1;
    }
    if let Some(last) = begun.keys().next_back().copied() {
        begun.retain(|second, _| *second >= last - BEGUN_WITHIN_S);
    }
    begun
}

/// An evacuation among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evacuating {
    /// Its host.
    pub host_id: HostId,
    /// The segment of its host.
    pub segment_id: SegmentId,
    /// When it began.
    pub since: Timestamp,
    /// Its moves.
    pub queue: MoveQueue,
}

/// Moves of one host that may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The host.
    pub host_id: HostId,
    /// How many.
    pub at_most: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    under_way: u32,
    begun: u32,
}

/// Whose moves begin next, of all evacuations that are under way.
#[derive(Debug)]
pub struct Turns<'a> {
    evacuating: Vec<Evacuating>,
    policies: &'a BTreeMap<SegmentId, EvacuationPolicy>,
    /// Of those that have ended, too: what they have begun counts for a minute.
    of_segments: BTreeMap<SegmentId, Count>,
    of_platforms: BTreeMap<String, Count>,
    /// Of these no more may begin for now.
    done: BTreeSet<HostId>,
    now: Timestamp,
}

impl<'a> Turns<'a> {
    /// Of these evacuations, among them those that have ended within a minute, by what the segments say.
    #[must_use]
    pub fn new(
        evacuating: Vec<Evacuating>,
        policies: &'a BTreeMap<SegmentId, EvacuationPolicy>,
        now: Timestamp,
    ) -> Self {
        let mut turns = Self {
            evacuating: Vec::new(),
            policies,
            of_segments: BTreeMap::new(),
            of_platforms: BTreeMap::new(),
            done: BTreeSet::new(),
            now,
        };
        for one in &evacuating {
            turns.count(one, &one.queue, 1);
        }
        turns.evacuating = evacuating;
        turns
    }

    fn count(&mut self, of: &Evacuating, queue: &MoveQueue, sign: i64) {
        let now = self.now;
        let add = |count: &mut Count| {
            let sum = |one: u32, other: u32| {
                u32::try_from(i64::from(one) + sign * i64::from(other)).unwrap_or_default()
            };
            count.under_way = sum(count.under_way, queue.under_way);
            count.begun = sum(count.begun, queue.begun_within(now));
        };
        add(self.of_segments.entry(of.segment_id).or_default());
        add(self.of_platforms.entry(queue.platform.clone()).or_default());
    }

    /// Those that may begin next: of the highest priority first, then those of the evacuation that began first.
    pub fn next_turn(&mut self) -> Option<Turn> {
        let may = self.evacuating.iter().filter_map(|one| {
            let (priority, moves) = *one.queue.waiting.first()?;
            let at_most = self.room(one)?.min(moves);
            let order = (Reverse(priority), one.since, one.host_id);
            (at_most > 0 && !self.done.contains(&one.host_id)).then_some((order, at_most))
        });
        let ((_, _, host_id), at_most) = may.min()?;
        Some(Turn { host_id, at_most })
    }

    /// `None` where nothing is said of the segment or the platform: its moves wait for no turn.
    fn room(&self, one: &Evacuating) -> Option<u32> {
        let policy = self
            .policies
            .get(&one.segment_id)
            .filter(|policy| policy.has_turns())?;
        let of_segment = self.of_segments.get(&one.segment_id).copied().unwrap_or_default();
        let of_platform = self.of_platforms.get(&one.queue.platform).copied();
        let left =
            |limits: Option<MoveLimits>, count: Count| limits.map_or(u32::MAX, |limits| limits.room(count));
        let room = left(policy.in_segment, of_segment);
        let room = room.min(left(policy.on_platform, of_platform.unwrap_or_default()));
        Some(room.min(one.queue.room))
    }

    /// How the moves of a host stand after its turn. `None`: that is not known, and all of them may have begun. A host of which none has begun has no further turn.
    pub fn took(&mut self, turn: Turn, queue: Option<MoveQueue>) {
        // One that has ended may be of this host, too.
        let is_its = |one: &Evacuating| one.host_id == turn.host_id && !one.queue.waiting.is_empty();
        let Some(at) = self.evacuating.iter().position(is_its) else {
            return;
        };
        let before = self.evacuating[at].clone();
        let after = queue.unwrap_or_else(|| before.queue.with_untold(turn.at_most));
        if after.all_waiting() >= before.queue.all_waiting() {
            self.done.insert(turn.host_id);
        }
        self.count(&before, &before.queue, -1);
        self.count(&before, &after, 1);
        self.evacuating[at].queue = after;
    }
}
