//! S11: no step of a fence that was not asked for begins unless every query of the segment has allowed it lately.

use chrono::TimeDelta;
use proptest::prelude::*;
use proptest::sample::select;
use ringfence_core::*;
use ringfence_world::plans::{self, plan, task};
use ringfence_world::{Manner, World};

const QUERIES: [&str; 2] = ["prometheus", "cmdb"];
const COUNTS_S: i64 = 30;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Said {
    Allow,
    Hold,
    Nothing,
}

#[derive(Clone, Debug)]
enum Action {
    /// An engine asks all queries.
    Ask([Said; 2]),
    /// What an engine was told when it asked so many times before comes late.
    Late(usize),
    Suspend,
    Resume,
    /// The devices refuse what they are told, or do it again.
    Refuse(bool),
    Pass(u16),
    FallSilent,
    ComeBack,
    Work,
    Cancel,
    Retry,
    Fence,
    /// A program asks for it.
    AskByProgram,
}

fn said() -> impl Strategy<Value = Said> {
    select(vec![
        Said::Allow,
        Said::Allow,
        Said::Allow,
        Said::Hold,
        Said::Nothing,
    ])
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => [said(), said()].prop_map(Action::Ask),
        8 => (0..20_000_u16).prop_map(Action::Pass),
        2 => (1..4_usize).prop_map(Action::Late),
        1 => Just(Action::Suspend),
        1 => Just(Action::Resume),
        2 => any::<bool>().prop_map(Action::Refuse),
        4 => Just(Action::FallSilent),
        2 => Just(Action::ComeBack),
        6 => Just(Action::Work),
        1 => Just(Action::Cancel),
        1 => Just(Action::Retry),
        1 => Just(Action::Fence),
        3 => Just(Action::AskByProgram),
    ]
}

#[derive(Clone, Debug)]
struct Asked {
    at: Timestamp,
    known_at: Timestamp,
    said: [Said; 2],
}

/// One host whose plan has three steps, the last of which suffices.
struct Queried {
    world: World,
    /// What was said to questions of which moment, and when a decision could know.
    asked: Vec<Asked>,
    /// Operations that a person has wanted.
    wanted: Vec<OperationId>,
    /// Steps that have begun, and when.
    begun: Vec<(OperationId, usize, Timestamp)>,
    violation: Option<String>,
}

impl Queried {
    fn new() -> Self {
        let policy = SegmentPolicy {
            fencing: FencingPolicy {
                automatic: true,
                after_s: 0,
                queries: QUERIES.map(str::to_owned).into(),
                ..FencingPolicy::default()
            },
            restarts: 1,
            restart_delay_s: 45,
            ..plans::policy()
        };
        let step = |kind, method| vec![task(kind, &[&[method]])];
        let steps = vec![
            step(FencingKind::NetworkFence, "switch"),
            step(FencingKind::StorageFence, "array"),
            step(FencingKind::PowerOff, "bmc"),
        ];
        let mut plan = plan(steps);
        plan.sufficient_sets = vec![[ProofKind::PowerOff].into()];
        let mut world = World::new(plan, policy);
        world.restarts = false;
        Self {
            world,
            asked: Vec::new(),
            wanted: Vec::new(),
            begun: Vec::new(),
            violation: None,
        }
    }

    fn ask(&mut self, said: [Said; 2]) {
        let now = self.world.now;
        self.tell(Asked {
            at: now,
            known_at: now,
            said,
        });
    }

    fn tell(&mut self, asked: Asked) {
        let answer = |said| match said {
            Said::Nothing => Err("no answer".to_owned()),
            said => Ok(Answer {
                is_allowed: said == Said::Allow,
                reason: "so".to_owned(),
            }),
        };
        let queries = QUERIES.map(str::to_owned).into_iter().zip(asked.said.map(answer));
        self.world.opinions = Opinions {
            asked_at: Some(asked.at),
            queries: queries.collect(),
            ..Opinions::default()
        };
        self.asked.push(asked);
    }

    fn act(&mut self, action: &Action) {
        let world = &mut self.world;
        match *action {
            Action::Ask(said) => self.ask(said),
            Action::Late(ago) => {
                let asked = self.asked.iter().rev().nth(ago).cloned();
                let known_at = self.world.now;
                asked
                    .into_iter()
                    .for_each(|asked| self.tell(Asked { known_at, ..asked }));
            }
            Action::Suspend => world.suspend(SuspensionScope::Host, None),
            Action::Resume => world.resume(SuspensionScope::Host),
            Action::Refuse(refuses) => {
                let manner = if refuses { Manner::Refuses } else { Manner::Honest };
                for device in ["switch", "array", "bmc"] {
                    world.site.manners.insert(device.to_owned(), manner);
                }
            }
            Action::Pass(ms) => {
                for _ in 0..ms / 500 {
                    self.world.pass(500);
                    self.look();
                }
            }
            Action::FallSilent => drop(world.see(FailureState::Unreachable)),
            Action::ComeBack => drop(world.see(FailureState::Up)),
            Action::Work => self.work(),
            Action::Cancel if world.state.operation.is_some() => drop(world.cancel()),
            Action::Retry if world.state.operation.is_some() => {
                self.wanted.push(world.live_id());
                drop(world.retry());
            }
            Action::Cancel | Action::Retry => {}
            Action::AskByProgram => drop(self.world.fence_for_program()),
            Action::Fence => {
                drop(world.fence());
                self.wanted
                    .extend(world.state.operation.as_ref().map(|live| live.id));
            }
        }
        self.look();
    }

    /// Workers do what they were told by now, one after the other.
    fn work(&mut self) {
        for at in 0..self.world.sent.len() {
            let attempt = self.world.sent[at].attempt;
            let live = self.world.state.operation.as_ref();
            let is_open = live.and_then(|live| live.find(attempt));
            let is_open = is_open.is_some_and(|(_, a)| matches!(a.state, AttemptStatus::Dispatched { .. }));
            if is_open {
                self.world.work(at);
                self.look();
            }
        }
    }

    /// Which steps have begun since.
    fn look(&mut self) {
        let Some(live) = self.world.state.operation.clone() else {
            return;
        };
        let is_fenced = self.world.is_fenced();
        for (number, stage) in live.stages.iter().enumerate() {
            let attempts = stage.tasks.iter().flat_map(|task| &task.attempts);
            let is_told = attempts
                .into_iter()
                .any(|attempt| Some(attempt.started_at) >= stage.started_at);
            let Some(started_at) = stage.started_at.filter(|_| is_told) else {
                continue;
            };
            if self.begun.contains(&(live.id, number, started_at)) {
                continue;
            }
            self.begun.push((live.id, number, started_at));
            let is_own = live.kind() == OperationKind::Fence && !self.wanted.contains(&live.id);
            if is_own && !is_fenced {
                self.judge(number, started_at);
            }
        }
    }

    fn judge(&mut self, number: usize, begun: Timestamp) {
        // A step begins with the next look of the clock after it was allowed.
        let decided = begun - TimeDelta::seconds(1);
        let known = self.asked.iter().rposition(|asked| asked.known_at <= decided);
        let mut last = self.asked[known.unwrap_or_default()..].iter();
        let is_allowed = last.any(|asked| {
            asked.said == [Said::Allow; 2] && decided - asked.at <= TimeDelta::seconds(COUNTS_S)
        });
        // What was asked before the step before it began says nothing of this one.
        let (id, ..) = self.begun[self.begun.len() - 1];
        let mut of_this = self.begun.iter().rev().filter(|(of, ..)| *of == id);
        let before = of_this.nth(1).map(|(_, _, at)| *at);
        let is_anew = before.is_none_or(|before| self.asked.iter().any(|asked| asked.at >= before));
        if !is_allowed || !is_anew {
            self.violation = Some(format!("step {number} began at {begun}, asked: {:?}", self.asked));
        }
    }
}

proptest! {
    #[test]
    fn s11_no_step_of_an_automatic_fence_begins_that_a_query_does_not_allow(
        actions in proptest::collection::vec(action(), 1..120),
    ) {
        let mut queried = Queried::new();
        for action in &actions {
            queried.act(action);
            prop_assert_eq!(&queried.violation, &None, "after {:?}", action);
        }
    }
}
