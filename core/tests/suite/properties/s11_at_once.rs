//! S11: of the fences that were not asked for, no more are under way in a segment than may be, whatever engines have counted before.
//!
//! Each host is decided for alone, with a count that may be old by then. The database counts permits when it commits.

use proptest::prelude::*;
use ringfence_core::*;
use ringfence_world::World;
use ringfence_world::plans;

use super::site::{Site, begun_at, is_under_way};

const HOSTS: usize = 5;

/// Some hosts of one segment.
struct Segment {
    site: Site,
    /// The minutes in which fences that were not asked for have begun.
    begun: Vec<String>,
}

/// What is bounded.
#[derive(Clone, Copy, Debug)]
enum Bound {
    AtOnce(u32),
    PerMinute(u32),
}

#[derive(Clone, Debug)]
enum Action {
    /// An engine counts for a host. It may decide much later.
    Count(usize),
    /// Time passes, and the host is decided for if it is due.
    Pass(usize, u16),
    FallSilent(usize),
    ComeBack(usize),
    Work(usize),
    Cancel(usize),
    /// A program asks for a fence.
    AskByProgram(usize),
    Retry(usize),
    Ask(usize),
}

fn action() -> impl Strategy<Value = Action> {
    let host = || 0..HOSTS;
    prop_oneof![
        4 => host().prop_map(Action::Count),
        8 => (host(), 0..20_000_u16).prop_map(|(host, ms)| Action::Pass(host, ms)),
        4 => host().prop_map(Action::FallSilent),
        1 => host().prop_map(Action::ComeBack),
        2 => host().prop_map(Action::Work),
        1 => host().prop_map(Action::Cancel),
        3 => host().prop_map(Action::AskByProgram),
        1 => host().prop_map(Action::Retry),
        1 => host().prop_map(Action::Ask),
    ]
}

impl Segment {
    fn new(bound: Bound) -> Self {
        let (at_once, per_minute) = match bound {
            Bound::AtOnce(at_most) => (Some(at_most), None),
            Bound::PerMinute(at_most) => (None, Some(at_most)),
        };
        let policy = SegmentPolicy {
            fencing: FencingPolicy {
                automatic: true,
                after_s: 0,
                at_once,
                per_minute,
                at_most: 10_000,
                at_most_percent: 100,
                ..FencingPolicy::default()
            },
            ..plans::policy()
        };
        Self {
            site: Site::new(HOSTS, &policy),
            begun: Vec::new(),
        }
    }

    /// What a database would count for the host now.
    fn around(&self, of: usize) -> Neighbourhood {
        let others = self.site.hosts.iter().enumerate().filter(|(at, _)| *at != of);
        let since = self.site.hosts[of].state.host.failure_since;
        let comes_first = |(at, other): (usize, &World)| {
            let host = &other.state.host;
            let live = other
                .state
                .operation
                .as_ref()
                .filter(|live| live.status.is_live());
            let waits = live.map_or(!host.is_silence_answered, |live| {
                live.status == OperationStatus::Held
            });
            let is_silent = host.failure_state == FailureState::Unreachable && host.fence.is_none();
            waits && is_silent && (host.failure_since, at) < (since, of)
        };
        let is_running = |other: &World| {
            let live = other.state.operation.as_ref();
            live.is_some_and(|live| {
                live.status == OperationStatus::Running && live.kind() == OperationKind::Fence
            })
        };
        Neighbourhood {
            hosts: 9,
            under_way: others.clone().filter(|(_, other)| is_running(other)).count() as u64,
            before_it: others.filter(|other| comes_first((other.0, other.1))).count() as u64,
            begun: self.kept_of_minute(of),
            ..Neighbourhood::default()
        }
    }

    fn kept_of_minute(&self, of: usize) -> u64 {
        let world = &self.site.hosts[of];
        let name = Permit::name_of_minute(world.state.host.segment_id, world.now);
        self.site.kept.iter().filter(|kept| **kept == name).count() as u64
    }

    fn change(&mut self, at: usize, change: impl FnOnce(&mut World)) {
        let was_under_way = is_under_way(&self.site.hosts[at]);
        self.site.change(at, change);
        if let Some(begun) = begun_at(&self.site.hosts[at]).filter(|_| !was_under_way) {
            self.begun.push(begun.format("%H:%M").to_string());
        }
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Count(host) => {
                self.site.hosts[*host].others = self.around(*host);
            }
            Action::Pass(host, ms) => self.change(*host, |world| world.pass(i64::from(*ms))),
            Action::FallSilent(host) => {
                self.change(*host, |world| drop(world.see(FailureState::Unreachable)));
            }
            Action::ComeBack(host) => self.change(*host, |world| drop(world.see(FailureState::Up))),
            Action::Work(host) => self.change(*host, World::work_off),
            Action::Cancel(host) => self.change(*host, |world| drop(world.cancel())),
            Action::Retry(host) => self.change(*host, |world| drop(world.retry())),
            Action::AskByProgram(host) => self.change(*host, |world| drop(world.fence_for_program())),
            Action::Ask(host) => self.change(*host, |world| drop(world.fence())),
        }
    }
}

proptest! {
    #[test]
    fn s11_no_more_fences_that_were_not_asked_for_are_under_way_than_may_be(
        at_most in 1..4_u32,
        actions in proptest::collection::vec(action(), 1..120),
    ) {
        let mut segment = Segment::new(Bound::AtOnce(at_most));
        for action in &actions {
            segment.act(action);
            let under_way = segment.site.hosts.iter().filter(|world| is_under_way(world)).count();
            prop_assert!(under_way <= at_most as usize, "{under_way} of {at_most} after {action:?}");
        }
    }

    #[test]
    fn s11_no_more_fences_that_were_not_asked_for_begin_in_a_minute_than_may(
        at_most in 1..4_u32,
        actions in proptest::collection::vec(action(), 1..120),
    ) {
        let mut segment = Segment::new(Bound::PerMinute(at_most));
        for action in &actions {
            segment.act(action);
            for minute in &segment.begun {
                let begun = segment.begun.iter().filter(|other| *other == minute).count();
                prop_assert!(begun <= at_most as usize, "{begun} of {at_most} at {minute} after {action:?}");
            }
        }
    }
}

/// All bounds, and each host as the first that falls silent.
#[test]
fn s11_every_host_that_was_held_is_fenced_in_the_end() {
    let bounds = (1..4).flat_map(|most| [Bound::AtOnce(most), Bound::PerMinute(most)]);
    for (bound, first) in bounds.flat_map(|bound| (0..HOSTS).map(move |first| (bound, first))) {
        let mut segment = Segment::new(bound);
        for step in 0..HOSTS {
            segment.act(&Action::FallSilent((first + step) % HOSTS));
        }
        // A minute of the clock may let one host begin.
        for _ in 0..60 * HOSTS {
            for at in 0..HOSTS {
                segment.act(&Action::Count(at));
                segment.act(&Action::Pass(at, 1_000));
                segment.act(&Action::Work(at));
            }
        }
        assert!(
            segment.site.hosts.iter().all(World::is_fenced),
            "{bound:?}, h{first} first"
        );
    }
}
