//! S11: a fence that was not asked for takes no power from a host that writes a crash dump, for as long as its segment waits for that.

use chrono::TimeDelta;
use proptest::prelude::*;
use ringfence_core::*;
use ringfence_world::plans::{self, plan, task};
use ringfence_world::{Manner, World};

const TIMEOUT_S: i64 = 120;
const OVER_AFTER_S: i64 = 30;

#[derive(Clone, Debug)]
enum Action {
    Message,
    /// Messages come every ten seconds, so many times.
    Dump(u8),
    Pass(u16),
    FallSilent,
    ComeBack,
    Work,
    /// A worker asks whether it may act on what it was told so many tasks before.
    Claim(usize),
    Refuse(bool),
    Cancel,
    Retry,
    Fence,
    /// A program asks for it.
    AskByProgram,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => Just(Action::Message),
        3 => (1..16_u8).prop_map(Action::Dump),
        8 => (0..40_000_u16).prop_map(Action::Pass),
        4 => Just(Action::FallSilent),
        1 => Just(Action::ComeBack),
        6 => Just(Action::Work),
        3 => (0..3_usize).prop_map(Action::Claim),
        2 => any::<bool>().prop_map(Action::Refuse),
        1 => Just(Action::Cancel),
        1 => Just(Action::Retry),
        1 => Just(Action::Fence),
        3 => Just(Action::AskByProgram),
    ]
}

/// One host whose power and storage are cut in one step, and whose power suffices.
struct Dumping {
    world: World,
    /// When the first and the last message of its dump came.
    dump: Option<(Timestamp, Timestamp)>,
    /// Operations that a person has wanted.
    wanted: Vec<OperationId>,
    /// Attempts at its power that were claimed.
    claimed: usize,
    violation: Option<String>,
}

impl Dumping {
    fn new() -> Self {
        let policy = SegmentPolicy {
            fencing: FencingPolicy {
                automatic: true,
                after_s: 0,
                kdump_timeout_s: Some(120),
                ..FencingPolicy::default()
            },
            restarts: 1,
            restart_delay_s: 45,
            ..plans::policy()
        };
        let mut plan = plan(vec![vec![
            task(FencingKind::StorageFence, &[&["array"]]),
            task(FencingKind::PowerOff, &[&["bmc"], &["pdu-1", "pdu-2"]]),
        ]]);
        plan.sufficient_sets = vec![[ProofKind::PowerOff].into()];
        let mut world = World::new(plan, policy);
        world.restarts = false;
        Self {
            world,
            dump: None,
            wanted: Vec::new(),
            claimed: 0,
            violation: None,
        }
    }

    fn act(&mut self, action: &Action) {
        match *action {
            Action::Message => self.message(),
            Action::Dump(messages) => (0..messages).for_each(|_| {
                self.message();
                self.pass(10_000);
            }),
            Action::Pass(ms) => self.pass(i64::from(ms)),
            Action::FallSilent => drop(self.world.see(FailureState::Unreachable)),
            Action::ComeBack => drop(self.world.see(FailureState::Up)),
            Action::Work => (0..self.world.sent.len()).for_each(|at| {
                if self.is_open(at) {
                    self.world.work(at);
                    self.look();
                }
            }),
            Action::Claim(ago) => {
                if let Some(at) = self.world.sent.len().checked_sub(ago + 1) {
                    let _ = self.world.deliver(at, "worker-1");
                }
            }
            Action::Refuse(refuses) => {
                let manner = if refuses { Manner::Refuses } else { Manner::Honest };
                for device in ["bmc", "pdu-1"] {
                    self.world.site.manners.insert(device.to_owned(), manner);
                }
            }
            Action::Cancel if self.world.state.operation.is_some() => drop(self.world.cancel()),
            Action::Retry if self.world.state.operation.is_some() => {
                if self.world.retry().is_ok() {
                    self.wanted.push(self.world.live_id());
                }
            }
            Action::Cancel | Action::Retry => {}
            Action::AskByProgram => drop(self.world.fence_for_program()),
            Action::Fence => {
                if self.world.fence().is_ok() && self.world.state.operation.is_some() {
                    self.wanted.push(self.world.live_id());
                }
            }
        }
        self.look();
    }

    fn is_open(&self, at: usize) -> bool {
        let attempt = self.world.sent[at].attempt;
        let live = self.world.state.operation.as_ref();
        let known = live.and_then(|live| live.find(attempt));
        known.is_some_and(|(_, a)| matches!(a.state, AttemptStatus::Dispatched { .. }))
    }

    fn message(&mut self) {
        let now = self.world.now;
        self.look();
        let since = self.dump.map_or(now, |(since, _)| since);
        self.dump = Some((since, now));
        self.world
            .give(Input::KdumpMessage { heard_after: None })
            .unwrap();
        self.look();
    }

    fn pass(&mut self, ms: i64) {
        for _ in 0..ms / 500 {
            self.world.pass(500);
            self.look();
        }
    }

    fn look(&mut self) {
        let now = self.world.now;
        let live = self.world.state.operation.as_ref();
        let live = live.filter(|live| live.status.is_live());
        let is_over = |last: Timestamp| now - last >= TimeDelta::seconds(OVER_AFTER_S);
        // A dump that pauses during an operation goes on afterwards.
        if live.is_none() && self.dump.is_some_and(|(_, last)| is_over(last)) {
            self.dump = None;
        }
        let operation = self.world.state.operation.as_ref();
        let tasks = operation.into_iter().flat_map(Operation::tasks);
        let power = tasks.filter(|task| task.kind() == FencingKind::PowerOff);
        let claimed = power.flat_map(|task| &task.attempts);
        let claimed = claimed.filter(|attempt| attempt.claimed_at.is_some()).count();
        let is_new = claimed > std::mem::replace(&mut self.claimed, claimed);
        let is_wanted = operation.is_some_and(|operation| self.wanted.contains(&operation.id));
        let is_on = self
            .dump
            .is_some_and(|(since, last)| !is_over(last) && now - since < TimeDelta::seconds(TIMEOUT_S));
        if is_new && is_on && !is_wanted {
            self.violation = Some(format!("power was taken at {now}, dump: {:?}", self.dump));
        }
    }
}

proptest! {
    #[test]
    fn s11_no_power_is_taken_from_a_host_that_writes_a_crash_dump(
        actions in proptest::collection::vec(action(), 1..120),
    ) {
        let mut dumping = Dumping::new();
        for action in &actions {
            dumping.act(action);
            prop_assert_eq!(&dumping.violation, &None, "after {:?}", action);
        }
    }

    #[test]
    fn l1_messages_without_end_hold_power_no_longer_than_the_segment_says(
        pauses in proptest::collection::vec(1..60_i64, 60..100),
    ) {
        let mut dumping = Dumping::new();
        dumping.act(&Action::FallSilent);
        for pause in &pauses {
            dumping.message();
            dumping.pass(pause * 1_000);
            dumping.act(&Action::Work);
        }
        // Two dumps at the most: one that was over before the fence began is another one.
        prop_assert!(dumping.world.is_fenced());
    }
}
