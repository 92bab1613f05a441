//! S1, S12: where a plan counts kdump, no message proves more than what was so when it was sent. Messages are under way for up to five seconds, workers'
//! reports of them for any time and any number of times; machines start again by themselves; sources are late; clocks differ and are set.

use chrono::TimeDelta;
use proptest::prelude::*;
use ringfence_core::*;
use ringfence_world::World;
use ringfence_world::plans::{self, plan, task};
use ringfence_world::search::{Ear, Letter, SimSource};

#[derive(Clone, Debug)]
enum Action {
    Die,
    StartAgain,
    /// The crash kernel sends a message, and it is heard so many milliseconds later.
    Send(u16),
    /// A worker tells of a message: of the newest but so many.
    Tell(usize),
    /// The host dies, and its messages are told at once.
    Dump(u8),
    /// Its dump is over; it runs again, is heard, and may start its workloads.
    Return,
    Link(bool),
    /// The source says what it sees.
    Look,
    /// It says so, and is heard later.
    Post,
    Arrive(usize),
    /// The host is heard no more.
    Lose,
    Pass(u16),
    Fence,
    Cancel,
    Retry,
    Rejoin,
    Work,
    Engine(i16),
    SetClock(i8),
    Forget,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        2 => Just(Action::Die),
        2 => Just(Action::StartAgain),
        4 => (0..5_500_u16).prop_map(Action::Send),
        8 => (0..4_usize).prop_map(Action::Tell),
        3 => (1..4_u8).prop_map(Action::Dump),
        4 => Just(Action::Return),
        2 => any::<bool>().prop_map(Action::Link),
        4 => Just(Action::Look),
        2 => Just(Action::Post),
        2 => (0..4_usize).prop_map(Action::Arrive),
        5 => Just(Action::Lose),
        8 => (100..9_000_u16).prop_map(Action::Pass),
        6 => Just(Action::Fence),
        1 => Just(Action::Cancel),
        1 => Just(Action::Retry),
        2 => Just(Action::Rejoin),
        1 => Just(Action::Work),
        1 => (-500..500_i16).prop_map(Action::Engine),
        2 => (-60..60_i8).prop_map(Action::SetClock),
        1 => Just(Action::Forget),
    ]
}

fn sets() -> impl Strategy<Value = Vec<SufficientSet>> {
    use ProofKind::{Kdump, PowerOff, StorageFence};
    prop_oneof![
        Just(vec![[Kdump].into()]),
        Just(vec![[PowerOff].into(), [Kdump].into()]),
        Just(vec![[Kdump, StorageFence].into()]),
    ]
}

struct Dumping {
    world: World,
    monitor: Ear,
    letters: Vec<Letter>,
    offset: TimeDelta,
    /// The generation of the last fence, and when that began, by the clock that is never set.
    began: (Generation, Timestamp),
    /// When the message was sent that has proven the fence, by that clock.
    proven_by: Option<Timestamp>,
    violation: Option<String>,
}

impl Dumping {
    fn new(sets: Vec<SufficientSet>) -> Self {
        let policy = SegmentPolicy {
            fencing: FencingPolicy {
                automatic: true,
                after_s: 8,
                kdump_timeout_s: Some(60),
                ..FencingPolicy::default()
            },
            ..plans::policy()
        };
        let both = vec![
            task(FencingKind::StorageFence, &[&["array"]]),
            task(FencingKind::PowerOff, &[&["bmc"]]),
        ];
        let plan = FrozenPlan {
            sufficient_sets: sets,
            ..plan(vec![both])
        };
        let mut world = World::new(plan, policy);
        world.restarts = false;
        world.records = false;
        let source = SimSource {
            name: "monitor".to_owned(),
            skew_ms: 0,
            patience_ms: 3_000,
            says_last_seen: true,
            is_deaf: false,
            names_boots: true,
            dates_boots: false,
        };
        let since = world.real - TimeDelta::hours(1);
        let mut dumping = Self {
            monitor: Ear { source, since },
            letters: Vec::new(),
            offset: TimeDelta::zero(),
            began: (Generation(0), world.real),
            proven_by: None,
            violation: None,
            world,
        };
        dumping.pass(1_000);
        dumping.look();
        dumping
    }

    fn act(&mut self, action: &Action) {
        let world = &mut self.world;
        match *action {
            Action::Die => world.site.crash(false),
            Action::StartAgain => drop(world.site.start_again()),
            Action::Send(late_ms) => self.send(late_ms),
            Action::Tell(ago) => self.tell(ago),
            Action::Dump(messages) => {
                world.site.crash(false);
                for _ in 0..messages {
                    self.pass(5_000);
                    self.send(0);
                    self.tell(0);
                }
            }
            Action::Return => {
                world.site.start_again();
                world.site.link("monitor", true);
                self.pass(5_000);
                self.look();
            }
            Action::Link(is_up) => world.site.link("monitor", is_up),
            Action::Look => self.look(),
            Action::Post => self.letters.push(self.monitor.look(world, 0)),
            Action::Arrive(ago) => {
                if let Some(letter) = nth_last(&self.letters, ago) {
                    self.read(letter);
                }
            }
            Action::Lose => {
                world.site.link("monitor", false);
                self.pass(3_500);
                self.look();
            }
            Action::Pass(ms) => self.pass(i64::from(ms)),
            Action::Fence => drop(world.fence()),
            Action::Cancel => drop(world.cancel()),
            Action::Retry => drop(world.retry()),
            Action::Rejoin => drop(world.rejoin(false)),
            Action::Work => world.work_off(),
            Action::Engine(ahead_ms) => self.other_engine(TimeDelta::milliseconds(i64::from(ahead_ms))),
            Action::SetClock(seconds) => {
                world.move_clock(i64::from(seconds));
                world.state.clock_set_at = Some(world.now);
                world.state.host.updated_at = world.state.host.updated_at.min(world.now);
                world.tick();
            }
            Action::Forget => world.forget(),
        }
        self.world.settle();
        self.judge(None);
    }

    fn send(&mut self, late_ms: u16) {
        if self.world.send_kdump() {
            self.pass(i64::from(late_ms));
            self.world.hear_kdump(0);
            self.world.datagrams.clear();
        }
    }

    fn tell(&mut self, ago: usize) {
        let Some(heard) = nth_last(&self.world.kdump_heard, ago) else {
            return;
        };
        let at = self
            .world
            .kdump_heard
            .iter()
            .position(|one| *one == heard)
            .unwrap();
        self.world.tell_kdump(at).unwrap();
        self.judge(Some(heard.sent_at));
    }

    fn look(&mut self) {
        let letter = self.monitor.look(&self.world, 0);
        self.read(letter);
    }

    fn read(&mut self, letter: Letter) {
        if letter.report.alive_at().is_some() {
            let world = &mut self.world;
            world.told_boot = world.told_boot.max(letter.boot.unwrap_or_default());
            world.told_alive_at = world
                .told_alive_at
                .max(letter.heard_at.unwrap_or(world.told_alive_at));
        }
        drop(self.world.report(letter.report));
    }

    fn pass(&mut self, ms: i64) {
        self.world.pass(ms);
        // The host's agent asks whenever it can.
        self.world.tick();
        self.judge(None);
    }

    /// Engines follow one clock, and differ a little. None decides before what another one has decided.
    fn other_engine(&mut self, offset: TimeDelta) {
        let now = self.world.now - self.offset + offset;
        self.world.now = now.max(self.world.last_decided);
        self.offset = offset + (self.world.now - now);
    }

    /// `told`: an engine was told just now of a message that was sent then.
    fn judge(&mut self, told: Option<Timestamp>) {
        let world = &self.world;
        if let Some(violation) = world.violation {
            self.violation = Some(format!("{violation:?}"));
        }
        let host = &world.state.host;
        if host.generation != self.began.0 {
            // It may have begun while time passed.
            let live = world.state.operation.as_ref();
            let ago = live.map_or(TimeDelta::zero(), |live| world.now - live.created_at);
            self.began = (host.generation, world.real - ago);
            self.proven_by = None;
        }
        let live = world.state.operation.iter().flat_map(|live| &live.proofs);
        let mut proofs = live.chain(host.fence.iter().flat_map(|fence| &fence.proofs));
        let is_proven = proofs.any(|proof| {
            let is_present = proof.generation == host.generation;
            is_present && proof.kind == ProofKind::Kdump && proof.ended.is_none()
        });
        if !is_proven {
            self.proven_by = None;
            return;
        }
        self.proven_by = self.proven_by.or(told);
        let alive_at = world.told_alive_at;
        let is_old = |sent_at: Timestamp| sent_at < self.began.1 || sent_at < alive_at;
        if self.proven_by.is_none_or(is_old) {
            self.violation = Some(format!(
                "proven by a message that was sent at {:?}; the fence began at {}, and the last sign of life came at {alive_at}",
                self.proven_by, self.began.1
            ));
        }
    }
}

fn nth_last<T: Clone>(all: &[T], ago: usize) -> Option<T> {
    all.iter().rev().nth(ago).cloned()
}

proptest! {
    #[test]
    fn s1_a_kdump_message_proves_what_was_so_when_it_was_sent(
        sets in sets(),
        actions in proptest::collection::vec(action(), 1..60),
    ) {
        let mut dumping = Dumping::new(sets);
        for action in &actions {
            dumping.act(action);
            prop_assert_eq!(&dumping.violation, &None, "after {:?}", action);
        }
    }
}
