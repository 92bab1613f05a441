//! S13, and S2: a heartbeat is never dated later than it came, and silence is told only while a storage was read and nothing was written.

use chrono::TimeDelta;
use proptest::prelude::*;
use ringfence_core::*;
use ringfence_world::plans::start;

const SILENT_AFTER_MS: i64 = 60_000;
const WORKERS: [&str; 3] = ["w1", "w2", "w3"];
/// After how long a storage that hears hosts forgets one, and how late it may be with that.
const FORGETS_AFTER_MS: i64 = 30_000;
const FORGETS_LATE_MS: i64 = 10_000;

#[derive(Clone, Debug)]
enum Action {
    Pass(i64),
    /// The host writes.
    Write,
    /// Another host takes its place, or it comes back.
    Replace,
    /// A worker reads, so many milliseconds after it was asked, and answers so many later. The last worker reads a copy that no write reaches.
    Read(usize, i64, i64),
    /// As before, of a storage that tells whether it hears the host; it may be so late to forget it.
    Listen(usize, i64, i64, i64),
    /// An answer that says nothing.
    Fail,
    /// Another engine goes on.
    Restart,
}

fn listening() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (0..25_000_i64).prop_map(Action::Pass),
        4 => Just(Action::Write),
        12 => (0..3_usize, 0..2_000_i64, 0..2_000_i64, 0..FORGETS_LATE_MS)
            .prop_map(|(worker, read, answer, late)| Action::Listen(worker, read, answer, late)),
        1 => Just(Action::Fail),
        1 => Just(Action::Restart),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (0..25_000_i64).prop_map(Action::Pass),
        4 => Just(Action::Write),
        1 => Just(Action::Replace),
        12 => (0..3_usize, 0..2_000_i64, 0..2_000_i64).prop_map(|(worker, read, answer)| Action::Read(worker, read, answer)),
        1 => Just(Action::Fail),
        1 => Just(Action::Restart),
    ]
}

/// One host, its storage, and what is concluded.
struct Storage {
    now: i64,
    writes: Vec<i64>,
    writer: u32,
    /// When it could not be read, and when an engine began.
    breaks: Vec<i64>,
    reads: u64,
    watch: HeartbeatWatch,
}

fn at(ms: i64) -> Timestamp {
    start() + TimeDelta::milliseconds(ms)
}

fn ms(at: Timestamp) -> i64 {
    (at - start()).num_milliseconds()
}

impl Storage {
    fn new() -> Self {
        Self {
            now: 0,
            writes: Vec::new(),
            writer: 0,
            breaks: vec![0],
            reads: 0,
            watch: HeartbeatWatch::new(TimeDelta::milliseconds(SILENT_AFTER_MS), at(0)),
        }
    }

    fn act(&mut self, action: &Action) {
        match *action {
            Action::Pass(ms) => self.now += ms,
            Action::Write => self.writes.push(self.now),
            Action::Replace => self.writer ^= 1,
            Action::Read(worker, read, answer) => self.read(worker, read, answer),
            Action::Listen(worker, read, answer, late) => self.listen(worker, read, answer, late),
            Action::Fail => {
                self.breaks.push(self.now);
                let heartbeat = Heartbeat::Unclear { why: String::new() };
                let told = self.take(&heartbeat, "", self.now);
                assert!(told.is_none_or(|told| told.state == FailureState::Unknown));
            }
            Action::Restart => {
                self.breaks.push(self.now);
                self.reads = 0;
                self.watch = HeartbeatWatch::new(TimeDelta::milliseconds(SILENT_AFTER_MS), at(self.now));
            }
        }
    }

    fn take(&mut self, heartbeat: &Heartbeat, worker: &str, asked: i64) -> Option<Sighting> {
        let reading = HeartbeatReading {
            heartbeat,
            worker,
            asked_at: at(asked),
            answered_at: at(self.now),
        };
        self.watch.take(reading, true)
    }

    fn listen(&mut self, worker: usize, read: i64, answer: i64, late: i64) {
        let asked = self.now;
        self.now += read;
        let last = self.writes.last().map(|write| self.now - write);
        let heartbeat = match last.is_some_and(|ago| ago <= FORGETS_AFTER_MS + late) {
            true => Heartbeat::Heard {
                by: "client.1".to_owned(),
                within_s: u32::try_from((FORGETS_AFTER_MS + FORGETS_LATE_MS) / 1_000).unwrap(),
            },
            false => Heartbeat::Unheard,
        };
        self.now += answer;
        let Some(told) = self.take(&heartbeat, WORKERS[worker], asked) else {
            return;
        };
        assert_ne!(told.state, FailureState::Unknown, "it was read: {told:?}");
        match told.state {
            FailureState::Up => {
                let after = ms(told.observed_at);
                let is_true = self
                    .writes
                    .iter()
                    .any(|write| *write >= after && *write <= asked + read);
                assert!(is_true, "{told:?} after {:?}", self.writes);
            }
            FailureState::Unreachable => {
                let since = ms(told.silent_since.unwrap());
                assert!(asked - since >= SILENT_AFTER_MS);
                assert!(!self.breaks.iter().any(|at| *at > since), "{told:?}");
                // A host that wrote since then was heard, unless it has stopped again for longer than a storage remembers.
                let since_heard = asked - FORGETS_AFTER_MS;
                let is_false = self
                    .writes
                    .iter()
                    .any(|write| *write > since_heard && *write <= asked);
                assert!(!is_false, "{told:?} after {:?}", self.writes);
            }
            FailureState::Unknown => {}
        }
    }

    fn read(&mut self, worker: usize, read: i64, answer: i64) {
        let asked = self.now;
        self.now += read;
        let is_copy = worker == 2;
        let mark = if is_copy { 0 } else { self.writes.len() };
        let heartbeat = Heartbeat::Written {
            writer: self.writer.to_string(),
            mark: mark.to_string(),
        };
        self.now += answer;
        let told = self.take(&heartbeat, WORKERS[worker], asked);
        self.reads += 1;
        let Some(told) = told else { return };
        assert!(self.reads > 1, "the first reading says nothing: {told:?}");
        assert_ne!(told.state, FailureState::Unknown, "it was read: {told:?}");
        match told.state {
            FailureState::Up => {
                let after = ms(told.observed_at);
                let is_true = self
                    .writes
                    .iter()
                    .any(|write| *write >= after && *write <= asked + read);
                assert!(is_true && !is_copy, "{told:?} after {:?}", self.writes);
            }
            FailureState::Unreachable => {
                let since = ms(told.silent_since.unwrap());
                assert!(asked - since >= SILENT_AFTER_MS);
                assert!(
                    !self.breaks.iter().any(|at| *at > since),
                    "{told:?} over {:?}",
                    self.breaks
                );
                if !is_copy {
                    let is_false = self.writes.iter().any(|write| *write > since && *write <= asked);
                    assert!(!is_false, "{told:?} after {:?}", self.writes);
                }
            }
            FailureState::Unknown => {}
        }
    }
}

proptest! {
    #[test]
    fn a_heartbeat_came_after_its_date_and_silence_is_watched(actions in prop::collection::vec(action(), 1..200)) {
        let mut storage = Storage::new();
        for action in &actions {
            storage.act(action);
        }
    }

    #[test]
    fn a_host_that_a_storage_hears_is_dated_no_later_than_it_was_heard(actions in prop::collection::vec(listening(), 1..200)) {
        let mut storage = Storage::new();
        for action in &actions {
            storage.act(action);
        }
    }
}
