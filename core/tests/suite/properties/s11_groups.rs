//! S11: of a group of hosts, no fence that was not asked for takes one more than may be out of service, and no more run than may at one time, whatever engines have counted before.
//!
//! What is judged is which hosts have power. Engines decide late, by what they counted then. And of a fence that has begun, no step begins while too few others have been in service
//! for longer than a count is good.

use proptest::prelude::*;
use ringfence_core::*;
use ringfence_world::World;
use ringfence_world::plans;

use super::site::{Site, command_newest, is_under_way};

const HOSTS: usize = 5;

/// What the segment says of the group.
#[derive(Clone, Copy, Debug)]
enum Bound {
    AtMostOut(u32),
    Majority,
    AtOnce(u32),
}

#[derive(Clone, Debug)]
enum Action {
    /// An engine counts for a host. It may decide much later.
    Count(usize),
    Pass(u16),
    FallSilent(usize),
    ComeBack(usize),
    Work(usize),
    /// A worker claims an attempt and commands the device, and is not heard of again.
    Command(usize),
    Cancel(usize),
    /// A program asks for a fence.
    AskByProgram(usize),
    /// It loses its power by itself.
    Die(usize),
}

fn action() -> impl Strategy<Value = Action> {
    let host = || 0..HOSTS;
    prop_oneof![
        6 => host().prop_map(Action::Count),
        8 => (0..6_000_u16).prop_map(Action::Pass),
        6 => host().prop_map(Action::FallSilent),
        1 => host().prop_map(Action::ComeBack),
        4 => host().prop_map(Action::Work),
        3 => host().prop_map(Action::Command),
        2 => host().prop_map(Action::Cancel),
        3 => host().prop_map(Action::AskByProgram),
    ]
}

/// More is worked off, so that fences come to their second steps.
fn step_action() -> impl Strategy<Value = Action> {
    let host = || 0..HOSTS;
    prop_oneof![
        4 => action(),
        4 => (5_000..20_000_u16).prop_map(Action::Pass),
        4 => host().prop_map(Action::Work),
        1 => host().prop_map(Action::Die),
    ]
}

fn bound() -> impl Strategy<Value = Bound> {
    prop_oneof![
        (1..4_u32).prop_map(Bound::AtMostOut),
        Just(Bound::Majority),
        (1..4_u32).prop_map(Bound::AtOnce),
    ]
}

/// Hosts of one rack.
struct Rack {
    site: Site,
    bound: Bound,
    /// Since when each host has been out of service without a break, as far as is known.
    out_since: [Option<Timestamp>; HOSTS],
    violation: Option<String>,
}

impl Rack {
    fn new(bound: Bound) -> Self {
        let (at_once, at_most_out) = match bound {
            Bound::AtOnce(most) => (Some(most), None),
            Bound::AtMostOut(most) => (None, Some(most)),
            Bound::Majority => (None, None),
        };
        let rule = GroupRule {
            label: Some("rack".to_owned()),
            at_once,
            at_most_out,
            majority: matches!(bound, Bound::Majority),
        };
        let policy = SegmentPolicy {
            fencing: FencingPolicy {
                automatic: true,
                after_s: 0,
                at_most: 10_000,
                at_most_percent: 100,
                groups: vec![rule],
                ..FencingPolicy::default()
            },
            ..plans::policy()
        };
        let mut site = Site::new(HOSTS, &policy);
        for world in &mut site.hosts {
            world.state.host.labels = [("rack".to_owned(), "r1".to_owned())].into();
            world.see(FailureState::Up).unwrap();
        }
        Self {
            site,
            bound,
            out_since: [None; HOSTS],
            violation: None,
        }
    }

    /// Hosts that lose their network first, and their power later than a count is good.
    fn by_steps(bound: Bound, delay_s: u32) -> Self {
        let mut rack = Self::new(bound);
        let step = |kind, method| vec![plans::task(kind, &[&[method]])];
        let steps = vec![
            step(FencingKind::NetworkFence, "switch"),
            step(FencingKind::PowerOff, "bmc"),
        ];
        let mut plan = plans::plan(steps);
        plan.stages[1].delay_s = delay_s;
        for world in &mut rack.site.hosts {
            world.plan = plan.clone();
        }
        rack
    }

    /// What a database would count for the host now.
    fn count(&mut self, of: usize) {
        let others = self.site.hosts.iter().enumerate().filter(|(at, _)| *at != of);
        let since = self.site.hosts[of].state.host.failure_since;
        let comes_first = |at: usize, world: &World| {
            let host = &world.state.host;
            let live = world
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
        let count = GroupCount {
            hosts: HOSTS as u64,
            out: others.clone().filter(|(_, world)| is_out(world)).count() as u64,
            under_way: others.clone().filter(|(_, world)| is_running(world)).count() as u64,
            before_it: others.filter(|(at, world)| comes_first(*at, world)).count() as u64,
        };
        let kept = self.site.kept.clone();
        let world = &mut self.site.hosts[of];
        let policy = &world.state.policy.fencing;
        let names = policy
            .groups(&world.state.host.labels)
            .flat_map(|group| group.begun_as(world.now));
        let begun = names.map(|name| {
            let taken = kept.iter().filter(|kept| **kept == name).count();
            (name, taken as u64)
        });
        let begun = begun.collect();
        world.others.groups = GroupCounts {
            counted_at: Some(world.now),
            by_name: [("rack=r1".to_owned(), count)].into(),
            begun,
        };
    }

    fn change(&mut self, at: usize, change: impl FnOnce(&mut World)) -> bool {
        let was_under_way = is_under_way(&self.site.hosts[at]);
        let before = steps_begun(&self.site.hosts[at]);
        let is_done = self.site.change(at, change);
        let world = &self.site.hosts[at];
        self.out_since[at] = is_out(world).then(|| self.out_since[at].unwrap_or(world.now));
        let begins_a_step = steps_begun(world) > before;
        if is_under_way(world) && !was_under_way {
            self.judge(at);
        }
        if begins_a_step {
            self.judge_step(at);
        }
        is_done
    }

    /// A step of the host's fence has begun that no person has asked for.
    fn judge_step(&mut self, at: usize) {
        let most = match self.bound {
            Bound::AtOnce(_) => return,
            Bound::AtMostOut(most) => most as usize,
            Bound::Majority => (HOSTS - 1) / 2,
        };
        let now = self.site.hosts[at].now;
        // A count is good for 30 s.
        let is_known = |since: Timestamp| (now - since).num_seconds() > 30;
        let others = (0..HOSTS).filter(|other| *other != at && self.out_since[*other].is_some_and(is_known));
        let out = others.count();
        if out >= most {
            self.violation = Some(format!(
                "a step of h{at} begins, and {out} of {most} are out of service"
            ));
        }
    }

    /// A fence of the host has begun.
    fn judge(&mut self, at: usize) {
        let all = || self.site.hosts.iter().enumerate();
        let (taken, most) = match self.bound {
            Bound::AtOnce(most) => (
                all().filter(|(_, world)| is_under_way(world)).count(),
                most as usize,
            ),
            Bound::AtMostOut(most) => (self.down(at), most as usize),
            Bound::Majority => (self.down(at), (HOSTS - 1) / 2),
        };
        if taken > most {
            self.violation = Some(format!("h{at} is number {taken} of {most}"));
        }
    }

    /// Hosts that have no power or are about to lose it, this one counted.
    fn down(&self, at: usize) -> usize {
        let is_down =
            |other: usize, world: &World| other == at || !world.site.is_powered() || is_under_way(world);
        let all = self.site.hosts.iter().enumerate();
        all.filter(|(other, world)| is_down(*other, world)).count()
    }

    /// All clocks are one.
    fn pass(&mut self, milliseconds: i64) {
        for _ in 0..milliseconds / 500 {
            for at in 0..HOSTS {
                if !self.change(at, |world| world.pass(500)) {
                    self.site.hosts[at].pass_unseen(500);
                }
            }
        }
    }

    fn act(&mut self, action: &Action) {
        match *action {
            Action::Count(host) => self.count(host),
            Action::Pass(ms) => self.pass(i64::from(ms)),
            Action::FallSilent(host) => {
                self.change(host, |world| drop(world.see(FailureState::Unreachable)));
            }
            Action::ComeBack(host) if !self.site.hosts[host].site.is_powered() => {}
            Action::ComeBack(host) => {
                self.change(host, |world| drop(world.see(FailureState::Up)));
            }
            Action::Command(host) => {
                self.change(host, command_newest);
            }
            Action::Work(host) => {
                self.change(host, World::work_off);
            }
            Action::AskByProgram(host) => {
                self.change(host, |world| drop(world.fence_for_program()));
            }
            Action::Cancel(host) => {
                self.change(host, |world| drop(world.cancel()));
            }
            Action::Die(host) => {
                self.change(host, |world| {
                    world.site.plug(false);
                    drop(world.see(FailureState::Unreachable));
                });
            }
        }
    }
}

fn is_running(world: &World) -> bool {
    let live = world.state.operation.as_ref();
    live.is_some_and(|live| live.status == OperationStatus::Running && live.kind() == OperationKind::Fence)
}

/// As a database counts it.
fn is_out(world: &World) -> bool {
    let host = &world.state.host;
    host.failure_state != FailureState::Up
        || world.is_fenced()
        || !host.applied.fencing.is_empty()
        || is_running(world)
}

/// Steps of which a worker was told, of a fence that no person has asked for and that has proven nothing.
fn steps_begun(world: &World) -> usize {
    let live = world.state.operation.as_ref().filter(|_| !world.is_fenced());
    let is_its = |live: &&Operation| {
        let fence = live.fence();
        fence.is_some_and(|fence| fence.cause != Cause::Request && !fence.is_wanted)
    };
    let tasks = live.filter(is_its).into_iter().flat_map(Operation::tasks);
    tasks.filter(|task| !task.attempts.is_empty()).count()
}

proptest! {
    #[test]
    fn s11_no_more_hosts_of_a_group_are_taken_than_may_be(
        bound in bound(),
        actions in proptest::collection::vec(action(), 1..120),
    ) {
        let mut rack = Rack::new(bound);
        for action in &actions {
            rack.act(action);
            prop_assert_eq!(&rack.violation, &None, "after {:?}", action);
        }
    }
}

proptest! {
    #[test]
    fn s11_no_step_of_a_fence_begins_while_too_few_others_of_a_group_are_in_service(
        bound in bound(),
        delay_s in 0..60_u32,
        actions in proptest::collection::vec(step_action(), 1..120),
    ) {
        let mut rack = Rack::by_steps(bound, delay_s);
        for action in &actions {
            rack.act(action);
            // The judge of beginnings knows nothing of hosts that die by themselves.
            let steps = rack.violation.iter().filter(|told| told.starts_with("a step"));
            prop_assert_eq!(steps.count(), 0, "{:?} after {:?}", &rack.violation, action);
        }
    }
}

#[test]
fn s11_a_fence_stands_still_before_its_next_step_while_too_few_others_are_in_service() {
    let mut rack = Rack::by_steps(Bound::Majority, 40);
    // In the middle of a span of 30 s.
    rack.pass(12_000);
    rack.act(&Action::Count(0));
    rack.act(&Action::FallSilent(0));
    rack.pass(6_000);
    rack.act(&Action::Work(0));
    assert_eq!(steps_begun(&rack.site.hosts[0]), 1);
    for host in [1, 2] {
        rack.act(&Action::Die(host));
    }
    let wait = |rack: &mut Rack, s: usize| {
        for _ in 0..s {
            rack.act(&Action::Count(0));
            rack.act(&Action::Work(0));
            rack.pass(1_000);
        }
    };
    wait(&mut rack, 60);
    let live = rack.site.hosts[0].state.operation.clone().unwrap();
    assert_eq!(live.status, OperationStatus::Held, "{}", live.detail);
    assert!(
        live.detail
            .contains("2 other hosts of the group rack=r1 are out of service"),
        "{}",
        live.detail
    );
    assert_eq!(steps_begun(&rack.site.hosts[0]), 1);
    rack.site.hosts[2].site.plug(true);
    rack.act(&Action::ComeBack(2));
    wait(&mut rack, 12);
    assert!(rack.site.hosts[0].is_fenced());
    assert_eq!(rack.violation, None);
}

/// So many of all hosts that fall silent together are fenced.
fn fenced_of_all(bound: Bound) -> usize {
    let mut rack = Rack::new(bound);
    for host in 0..HOSTS {
        rack.act(&Action::FallSilent(host));
        rack.act(&Action::Pass(1_000));
    }
    for _ in 0..60 {
        for host in 0..HOSTS {
            rack.act(&Action::Count(host));
            rack.act(&Action::Work(host));
        }
        rack.act(&Action::Pass(1_000));
    }
    assert_eq!(rack.violation, None);
    rack.site.hosts.iter().filter(|world| world.is_fenced()).count()
}

#[test]
fn s11_fences_that_have_begun_in_two_spans_since_a_count_are_counted_together() {
    let mut rack = Rack::new(Bound::Majority);
    rack.pass(12_000);
    rack.act(&Action::Count(1));
    rack.act(&Action::FallSilent(0));
    rack.act(&Action::Count(0));
    // The next span begins at 30 s, and clocks may differ by a little.
    rack.pass(22_000);
    rack.act(&Action::FallSilent(4));
    rack.act(&Action::Count(4));
    rack.act(&Action::FallSilent(1));
    rack.pass(5_000);
    assert_eq!(rack.violation, None);
    let begun = |host: usize| is_under_way(&rack.site.hosts[host]);
    assert!(begun(0) && begun(4) && !begun(1));
}

#[test]
fn s11_hosts_of_a_group_are_fenced_one_after_the_other_until_too_few_are_left() {
    assert_eq!(fenced_of_all(Bound::AtOnce(1)), HOSTS);
    // The others may have power still, and are known to be silent only. Which of them is it that may be fenced?
    assert_eq!(fenced_of_all(Bound::Majority), 0);
    let mut rack = Rack::new(Bound::AtMostOut(2));
    for host in [0, 1] {
        rack.act(&Action::FallSilent(host));
        rack.act(&Action::Count(host));
    }
    for _ in 0..20 {
        for host in [0, 1] {
            rack.act(&Action::Count(host));
            rack.act(&Action::Work(host));
        }
        rack.act(&Action::Pass(1_000));
    }
    assert_eq!(rack.violation, None);
    assert!(rack.site.hosts[0].is_fenced() && rack.site.hosts[1].is_fenced());
}
