//! S11: after the storm brake has held a fence of a segment, no other one begins by itself before the segment has been quiet for some time.

use chrono::TimeDelta;
use proptest::prelude::*;
use ringfence_core::*;
use ringfence_world::World;
use ringfence_world::plans;

use super::site::{Site, begun_at, is_under_way};

const HOSTS: usize = 5;
const QUIET_S: i64 = 30;

/// Some hosts of one segment, which takes one failure for usual and two for a storm.
struct Segment {
    site: Site,
    /// When each host was seen in another failure state.
    changes: Vec<(usize, Timestamp)>,
    /// When the storm brake held a fence.
    brakes: Vec<Timestamp>,
    /// What an engine counted for each host last, and when.
    counted_at: [Option<Timestamp>; HOSTS],
    violation: Option<String>,
}

#[derive(Clone, Debug)]
enum Action {
    Count(usize),
    Pass(u16),
    FallSilent(usize),
    ComeBack(usize),
    Work(usize),
    Cancel(usize),
    /// A program asks for a fence.
    AskByProgram(usize),
    Retry(usize),
}

fn action() -> impl Strategy<Value = Action> {
    let host = || 0..HOSTS;
    prop_oneof![
        6 => host().prop_map(Action::Count),
        8 => (0..12_000_u16).prop_map(Action::Pass),
        6 => host().prop_map(Action::FallSilent),
        2 => host().prop_map(Action::ComeBack),
        3 => host().prop_map(Action::Work),
        2 => host().prop_map(Action::Cancel),
        3 => host().prop_map(Action::AskByProgram),
        1 => host().prop_map(Action::Retry),
    ]
}

fn is_braked(world: &World) -> bool {
    let live = world.state.operation.as_ref();
    live.is_some_and(|live| live.is_held_by_brake() && live.status == OperationStatus::NeedsOperator)
}

impl Segment {
    fn new() -> Self {
        let policy = SegmentPolicy {
            fencing: FencingPolicy {
                automatic: true,
                after_s: 0,
                at_most: 1,
                within_s: 20,
                at_most_percent: 100,
                quiet_s: Some(u32::try_from(QUIET_S).unwrap()),
                ..FencingPolicy::default()
            },
            ..plans::policy()
        };
        Self {
            site: Site::new(HOSTS, &policy),
            changes: Vec::new(),
            brakes: Vec::new(),
            counted_at: [None; HOSTS],
            violation: None,
        }
    }

    /// What a database would tell of the host's segment now.
    fn count(&mut self, of: usize) {
        let now = self.site.hosts[of].now;
        let lately = |world: &&World| {
            let host = &world.state.host;
            let since = host
                .failure_since
                .filter(|_| host.failure_state == FailureState::Unreachable);
            since.is_some_and(|since| since > now - TimeDelta::seconds(20))
        };
        let others = self.site.hosts.iter().enumerate().filter(|(at, _)| *at != of);
        let lately = others.filter(|(_, world)| lately(world)).count() as u64;
        let braked_at = self
            .site
            .hosts
            .iter()
            .filter_map(|world| world.state.host.braked_at)
            .max();
        let changes: Vec<Timestamp> = self
            .changes
            .iter()
            .filter(|(host, _)| *host != of)
            .map(|(_, at)| *at)
            .collect();
        let quiet_s = u32::try_from(QUIET_S).unwrap();
        self.site.hosts[of].others = Neighbourhood {
            hosts: 9,
            lately,
            not_quiet_since: braked_at
                .and_then(|braked_at| not_quiet_since(braked_at, &changes, quiet_s, now)),
            ..Neighbourhood::default()
        };
        self.counted_at[of] = Some(now);
    }

    fn change(&mut self, at: usize, change: impl FnOnce(&mut World)) {
        let before = &self.site.hosts[at];
        let (was_under_way, was_braked, seen) = (
            is_under_way(before),
            is_braked(before),
            before.state.host.failure_state,
        );
        self.site.change(at, change);
        let world = &self.site.hosts[at];
        if world.state.host.failure_state != seen {
            self.changes.push((at, world.now));
        }
        if is_braked(world) && !was_braked {
            let created_at = world.state.operation.as_ref().map(|live| live.updated_at);
            self.brakes.extend(created_at);
        }
        if begun_at(world).is_some() && !was_under_way {
            self.judge(at);
        }
    }

    /// A fence has begun by itself: what was counted for it was quiet for long enough since the last storm that was known then.
    fn judge(&mut self, of: usize) {
        let Some(counted_at) = self.counted_at[of] else {
            return;
        };
        // What was counted in the moment of the brake may have been counted before it.
        let Some(braked_at) = self.brakes.iter().filter(|at| **at < counted_at).max() else {
            return;
        };
        let mut moments: Vec<Timestamp> = self
            .changes
            .iter()
            .filter(|(host, at)| *host != of && at > braked_at && *at <= counted_at)
            .map(|(_, at)| *at)
            .collect();
        moments.extend([*braked_at, counted_at]);
        moments.sort_unstable();
        let longest = moments.windows(2).map(|pair| pair[1] - pair[0]).max();
        if longest.is_none_or(|longest| longest < TimeDelta::seconds(QUIET_S)) {
            self.violation = Some(format!("h{of} began after a storm at {braked_at}: {moments:?}"));
        }
    }

    fn act(&mut self, action: &Action) {
        match *action {
            Action::Count(host) => self.count(host),
            Action::Pass(ms) => {
                for _ in 0..ms / 500 {
                    for at in 0..HOSTS {
                        self.change(at, |world| world.pass(500));
                    }
                }
            }
            Action::FallSilent(host) => {
                self.change(host, |world| drop(world.see(FailureState::Unreachable)));
            }
            Action::ComeBack(host) => self.change(host, |world| drop(world.see(FailureState::Up))),
            Action::Work(host) => self.change(host, World::work_off),
            Action::AskByProgram(host) => self.change(host, |world| drop(world.fence_for_program())),
            Action::Cancel(host) => self.change(host, |world| drop(world.cancel())),
            Action::Retry(host) => self.change(host, |world| drop(world.retry())),
        }
    }
}

proptest! {
    #[test]
    fn s11_no_fence_begins_by_itself_after_a_storm_before_it_was_quiet(
        actions in proptest::collection::vec(action(), 1..150),
    ) {
        let mut segment = Segment::new();
        for action in &actions {
            segment.act(action);
            prop_assert_eq!(&segment.violation, &None, "after {:?}", action);
        }
    }
}

#[test]
fn s11_a_host_that_falls_silent_when_a_storm_is_over_is_fenced() {
    let mut segment = Segment::new();
    segment.act(&Action::FallSilent(0));
    segment.act(&Action::FallSilent(1));
    for host in [0, 1] {
        segment.act(&Action::Count(host));
    }
    segment.act(&Action::Pass(6_000));
    assert_eq!(segment.brakes.len(), 2);
    segment.act(&Action::FallSilent(2));
    segment.act(&Action::Count(2));
    segment.act(&Action::Pass(10_000));
    segment.act(&Action::Pass(8_000));
    segment.act(&Action::Count(2));
    segment.act(&Action::Pass(6_000));
    let held = segment.site.hosts[2].state.operation.clone().unwrap();
    assert!(
        is_braked(&segment.site.hosts[2]) || held.detail.contains("has not been quiet"),
        "{}",
        held.detail
    );
    for _ in 0..5 {
        segment.act(&Action::Pass(10_000));
    }
    segment.act(&Action::FallSilent(3));
    segment.act(&Action::Count(3));
    segment.act(&Action::Pass(6_000));
    segment.act(&Action::Work(3));
    assert!(segment.site.hosts[3].is_fenced());
    assert_eq!(segment.violation, None);
}
