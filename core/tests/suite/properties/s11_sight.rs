//! S11: while a source is cut off, and until it hears its hosts again, no host that lives is fenced by its word.
//!
//! What is judged is which hosts live. A source that is cut off loses all its hosts, or all but one; they fall silent one after the other within `after_s`, and are heard again one
//! after the other. Engines count late, and decide later by what they have counted.

use chrono::TimeDelta;
use proptest::prelude::*;
use ringfence_core::*;
use ringfence_world::World;
use ringfence_world::plans;

use super::site::{Site, is_under_way};

const HOSTS: usize = 6;
const AFTER_S: u32 = 4;
const QUIET_S: u32 = 40;
/// All hosts are heard again within so long: the quiet time without `after_s` and the age of a count.
const BACK_WITHIN_MS: i64 = (QUIET_S as i64 - AFTER_S as i64 - 11) * 1_000;
/// A source is cut off for so long at least: what is over before all hosts have fallen silent is not seen.
const CUT_OFF_MS: i64 = AFTER_S as i64 * 1_000;
/// Between two words of the source that a host is UP.
const REPEATED_MS: i64 = 60_000;
const STEP_MS: i64 = 1_000;

#[derive(Clone, Debug)]
enum Action {
    /// The source loses all hosts but this one, if there is such a one.
    CutOff(Option<usize>),
    /// It hears them again.
    Restore,
    Die(usize),
    /// An engine counts for a host. It may decide much later.
    Count(usize),
    Work(usize),
    /// A program asks for a fence: what it sees through is cut off as the source is.
    AskByProgram(usize),
    Pass(u16),
}

fn action() -> impl Strategy<Value = Action> {
    let host = || 0..HOSTS;
    prop_oneof![
        3 => proptest::option::of(host()).prop_map(Action::CutOff),
        4 => Just(Action::Restore),
        2 => host().prop_map(Action::Die),
        8 => host().prop_map(Action::Count),
        3 => host().prop_map(Action::Work),
        2 => host().prop_map(Action::AskByProgram),
        10 => (0..20_000_u16).prop_map(Action::Pass),
    ]
}

/// What the source has of one host.
struct Heard {
    lives: bool,
    /// Whether the source has lost it.
    is_lost: bool,
    is_up: bool,
    /// When the source says what has changed, or repeats that the host is UP.
    says_at: Timestamp,
}

struct Watched {
    worlds: Vec<World>,
    hosts: Vec<Heard>,
    /// What spreads out when hosts are lost and heard.
    spread_ms: [i64; HOSTS],
    cut_off_at: Timestamp,
    violation: Option<String>,
}

impl Watched {
    fn new(sight: Option<SightPolicy>, spread: [u16; HOSTS]) -> Self {
        let policy = SegmentPolicy {
            fencing: FencingPolicy {
                automatic: true,
                after_s: AFTER_S,
                at_most: 10_000,
                at_most_percent: 100,
                sight,
                ..FencingPolicy::default()
            },
            ..plans::policy()
        };
        let worlds = Site::new(HOSTS, &policy).hosts;
        let now = worlds[0].now;
        let heard = || Heard {
            lives: true,
            is_lost: false,
            is_up: false,
            says_at: now,
        };
        Self {
            worlds,
            hosts: std::iter::repeat_with(heard).take(HOSTS).collect(),
            spread_ms: spread.map(i64::from),
            cut_off_at: now,
            violation: None,
        }
    }

    fn now(&self) -> Timestamp {
        self.worlds[0].now
    }

    /// In so many milliseconds at most.
    fn soon(&self, host: usize, within_ms: i64) -> Timestamp {
        self.now() + TimeDelta::milliseconds(self.spread_ms[host] % within_ms)
    }

    fn is_counted(world: &World) -> bool {
        let live = world.state.operation.as_ref();
        let is_being_fenced = live.is_some_and(|live| live.status == OperationStatus::Running);
        !world.is_fenced() && !is_being_fenced
    }

    /// What a database would count now.
    fn count(&self) -> Sights {
        let now = self.now();
        let ago = |seconds| now - TimeDelta::seconds(seconds);
        let counted = self.worlds.iter().filter(|world| Self::is_counted(world));
        let sources = counted.filter_map(|world| world.state.host.sources.get("monitor"));
        let mut count = SourceCount::default();
        for source in sources {
            let is_heard = source.state == FailureState::Up && source.reported_at > ago(HEARD_S);
            let is_steady = source.up_since.is_some_and(|at| at <= ago(i64::from(QUIET_S)));
            count.hosts += 1;
            count.heard += u64::from(is_heard);
            count.steady += u64::from(is_heard && is_steady);
        }
        Sights {
            counted_at: Some(now),
            by_source: [("monitor".to_owned(), count)].into(),
        }
    }

    fn change(&mut self, at: usize, change: impl FnOnce(&mut World)) {
        let was_under_way = is_under_way(&self.worlds[at]);
        change(&mut self.worlds[at]);
        if is_under_way(&self.worlds[at]) && !was_under_way && self.hosts[at].lives {
            self.violation = Some(format!("h{at} lives and is fenced"));
        }
    }

    fn step(&mut self) {
        for at in 0..HOSTS {
            self.change(at, |world| world.pass(STEP_MS));
        }
        let now = self.now();
        for at in 0..HOSTS {
            let heard = &mut self.hosts[at];
            let is_heard = heard.lives && !heard.is_lost;
            if heard.says_at > now || (!is_heard && !heard.is_up) {
                continue;
            }
            heard.is_up = is_heard;
            heard.says_at = now + TimeDelta::milliseconds(REPEATED_MS);
            let state = if is_heard {
                FailureState::Up
            } else {
                FailureState::Unreachable
            };
            self.change(at, |world| drop(world.see(state)));
        }
    }

    /// With fewer hosts left one of them is no share that tells anything.
    fn spared(&self, spared: Option<usize>) -> Option<usize> {
        let counted = self.worlds.iter().filter(|world| Self::is_counted(world)).count();
        spared.filter(|_| counted > 3)
    }

    fn act(&mut self, action: &Action) {
        match *action {
            Action::CutOff(spared) => {
                let spared = self.spared(spared);
                self.cut_off_at = self.now();
                let lost = (0..HOSTS).filter(|host| Some(*host) != spared);
                for host in lost.filter(|host| !self.hosts[*host].is_lost).collect::<Vec<_>>() {
                    self.hosts[host].says_at = self.soon(host, i64::from(AFTER_S) * 1_000);
                    self.hosts[host].is_lost = true;
                }
            }
            Action::Restore if self.now() - self.cut_off_at < TimeDelta::milliseconds(CUT_OFF_MS) => {}
            Action::Restore => {
                for host in 0..HOSTS {
                    if self.hosts[host].is_lost {
                        self.hosts[host].says_at = self.soon(host, BACK_WITHIN_MS);
                        self.hosts[host].is_lost = false;
                    }
                }
            }
            Action::Die(host) => {
                if self.hosts[host].lives {
                    self.hosts[host].lives = false;
                    self.hosts[host].says_at = self.soon(host, i64::from(AFTER_S) * 1_000);
                }
            }
            Action::Count(host) => self.worlds[host].others.sights = self.count(),
            Action::Work(host) => self.change(host, World::work_off),
            // It asks of hosts that are silent.
            Action::AskByProgram(host) if self.hosts[host].is_up => {}
            Action::AskByProgram(host) => self.change(host, |world| drop(world.fence_for_program())),
            Action::Pass(ms) => {
                for _ in 0..i64::from(ms) / STEP_MS {
                    self.step();
                }
            }
        }
    }
}

const HALF: SightPolicy = SightPolicy {
    at_most_percent: 50,
    quiet_s: QUIET_S,
};

proptest! {
    #[test]
    fn s11_no_host_that_lives_is_fenced_by_the_word_of_a_source_that_is_cut_off(
        spread in any::<[u16; HOSTS]>(),
        actions in proptest::collection::vec(action(), 1..80),
    ) {
        let mut watched = Watched::new(Some(HALF), spread);
        watched.act(&Action::Pass(1_000));
        for action in &actions {
            watched.act(action);
            prop_assert_eq!(&watched.violation, &None, "after {:?}", action);
        }
    }
}

/// An engine reads and works for all hosts so many seconds.
fn go_on(watched: &mut Watched, seconds: u32) {
    for _ in 0..seconds {
        for host in 0..HOSTS {
            watched.act(&Action::Count(host));
            watched.act(&Action::Work(host));
        }
        watched.act(&Action::Pass(1_000));
    }
}

fn fenced(watched: &Watched) -> Vec<usize> {
    (0..HOSTS)
        .filter(|host| watched.worlds[*host].is_fenced())
        .collect()
}

#[test]
fn s11_without_it_hosts_that_live_are_fenced() {
    let mut watched = Watched::new(None, [0; HOSTS]);
    go_on(&mut watched, 5);
    watched.act(&Action::CutOff(None));
    go_on(&mut watched, 10);
    assert!(watched.violation.is_some());
}

#[test]
fn s11_a_host_that_is_dead_is_fenced_once_its_source_sees_again() {
    let mut watched = Watched::new(Some(HALF), [9_000; HOSTS]);
    go_on(&mut watched, QUIET_S + 5);
    // Of those that hear the others, one's word is enough.
    watched.act(&Action::Die(0));
    go_on(&mut watched, 30);
    assert_eq!(fenced(&watched), [0]);
    watched.act(&Action::CutOff(Some(4)));
    watched.act(&Action::Die(1));
    go_on(&mut watched, 60);
    assert_eq!(fenced(&watched), [0]);
    let held = watched.worlds[1].state.operation.as_ref().unwrap();
    let why = "monitor hears 1 of its 5 hosts, and may be cut off itself";
    assert!(held.is_held() && held.detail.contains(why), "{}", held.detail);
    watched.act(&Action::Restore);
    go_on(&mut watched, QUIET_S);
    assert_eq!(fenced(&watched), [0]);
    go_on(&mut watched, 30);
    assert_eq!((fenced(&watched), watched.violation), (vec![0, 1], None));
}
