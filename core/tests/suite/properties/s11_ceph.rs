//! S11: of the hosts that carry OSDs of a Ceph, a fence that was not asked for begins only where no other one is lost, as far as Ceph and Ringfence knew when Ceph was
//! asked, and no other such fence has begun since.
//!
//! Ceph's own answer is always that the OSDs can be stopped, it notices late, and engines decide late.

use std::collections::BTreeSet;

use proptest::prelude::*;
use ringfence_core::*;
use ringfence_world::World;
use ringfence_world::plans;

use super::site::{Site, begun_at, command_newest, is_under_way};

const HOSTS: usize = 4;

/// Hosts that carry an OSD each. Every three of them share a placement group, which takes writes with two.
struct Storage {
    site: Site,
    /// Whether the OSD of each host is dead, and whether Ceph knows.
    is_dead: [bool; HOSTS],
    is_down: [bool; HOSTS],
    /// What was known to be lost when Ceph was asked about each host, and when that was; nothing of it matters for a host whose OSD was known to be down.
    asked: [Option<(Timestamp, Option<BTreeSet<usize>>)>; HOSTS],
    /// Fences that were not asked for.
    begun: Vec<(usize, Timestamp)>,
    violation: Option<String>,
}

#[derive(Clone, Debug)]
enum Action {
    Ask(usize),
    Pass(u16),
    FallSilent(usize),
    ComeBack(usize),
    Work(usize),
    /// A worker claims an attempt and commands the device, and is not heard of again.
    Command(usize),
    Cancel(usize),
    /// A program asks for a fence.
    AskByProgram(usize),
    Fence(usize),
    OsdDies(usize),
    OsdReturns(usize),
    CephNotices(usize),
}

fn action() -> impl Strategy<Value = Action> {
    let host = || 0..HOSTS;
    prop_oneof![
        6 => host().prop_map(Action::Ask),
        8 => (0..6_000_u16).prop_map(Action::Pass),
        6 => host().prop_map(Action::FallSilent),
        1 => host().prop_map(Action::ComeBack),
        4 => host().prop_map(Action::Work),
        3 => host().prop_map(Action::Command),
        2 => host().prop_map(Action::Cancel),
        3 => host().prop_map(Action::AskByProgram),
        1 => host().prop_map(Action::Fence),
        1 => host().prop_map(Action::OsdDies),
        1 => host().prop_map(Action::OsdReturns),
        2 => host().prop_map(Action::CephNotices),
    ]
}

fn name(host: usize) -> String {
    format!("h{host}")
}

/// What an engine tells Ceph is lost: FENCED, being fenced, or something may have been taken from it.
fn is_gone(world: &World) -> bool {
    let live = world.state.operation.as_ref();
    let is_running =
        |live: &Operation| live.kind() == OperationKind::Fence && live.status == OperationStatus::Running;
    let is_taken_from = !world.state.host.applied.fencing.is_empty();
    world.is_fenced() || is_taken_from || live.is_some_and(is_running)
}

impl Storage {
    fn new() -> Self {
        let policy = SegmentPolicy {
            fencing: FencingPolicy {
                automatic: true,
                after_s: 0,
                at_most: 10_000,
                at_most_percent: 100,
                ceph: vec!["main".to_owned()],
                ..FencingPolicy::default()
            },
            ..plans::policy()
        };
        Self {
            site: Site::new(HOSTS, &policy),
            is_dead: [false; HOSTS],
            is_down: [false; HOSTS],
            asked: Default::default(),
            begun: Vec::new(),
            violation: None,
        }
    }

    fn group(&self, left_out: usize) -> PlacementGroup {
        let members = (0..HOSTS).filter(|host| *host != left_out);
        let acting: Vec<OsdId> = members
            .filter(|host| !self.is_down[*host])
            .map(|host| OsdId::try_from(host).unwrap())
            .collect();
        let state = match acting.len() {
            3 => "active+clean",
            _ => "active+undersized+degraded",
        };
        PlacementGroup {
            id: format!("1.{left_out}"),
            state: state.to_owned(),
            acting,
        }
    }

    fn maps(&self) -> CephMaps {
        let osd = |host: usize| {
            let osd = CephOsd {
                is_up: !self.is_down[host],
                is_in: true,
                hosts: [name(host)].into(),
                domain: Some(name(host)),
            };
            (OsdId::try_from(host).unwrap(), osd)
        };
        let pool = CephPool {
            min_size: 2,
            groups: 4,
        };
        CephMaps {
            fsid: "f".to_owned(),
            osds: (0..HOSTS).map(osd).collect(),
            monitors: Vec::new(),
            pools: [(1, pool)].into(),
            groups: (0..HOSTS).map(|left_out| self.group(left_out)).collect(),
        }
    }

    fn ask(&mut self, about: usize) {
        let others = || (0..HOSTS).filter(|host| *host != about);
        let gone: Vec<usize> = others().filter(|host| is_gone(&self.site.hosts[*host])).collect();
        // What is true, whatever an engine holds for lost.
        let is_off = |host: &usize| !self.site.hosts[*host].site.is_powered();
        let lost: BTreeSet<usize> = others()
            .filter(|host| self.is_down[*host] || is_off(host))
            .collect();
        let names: Vec<String> = gone.into_iter().map(name).collect();
        let survey = self.maps().survey(&name(about), &names, Some(true));
        let is_costly = survey.up > 0;
        let world = &mut self.site.hosts[about];
        world.opinions = Opinions {
            asked_at: Some(world.now),
            ceph: [("main".to_owned(), Ok(survey))].into(),
            ..Opinions::default()
        };
        self.asked[about] = Some((world.now, is_costly.then_some(lost)));
    }

    fn change(&mut self, at: usize, change: impl FnOnce(&mut World)) -> bool {
        let was_under_way = is_under_way(&self.site.hosts[at]);
        let is_done = self.site.change(at, change);
        if let Some(begun) = begun_at(&self.site.hosts[at]).filter(|_| !was_under_way) {
            self.judge(at, begun);
        }
        is_done
    }

    /// What has begun on a host.
    fn judge(&mut self, at: usize, begun: Timestamp) {
        let Some((asked_at, lost)) = self.asked[at].clone() else {
            self.violation = Some(format!("h{at} was not asked about"));
            return;
        };
        let Some(lost) = lost else { return };
        let since = self.begun.iter().filter(|(_, at)| *at >= asked_at);
        let since: Vec<usize> = since.map(|(host, _)| *host).collect();
        let is_old = (begun - asked_at).num_seconds() > 30;
        if !lost.is_empty() || !since.is_empty() || is_old {
            self.violation = Some(format!(
                "h{at}: {lost:?} lost, {since:?} begun since, old: {is_old}"
            ));
        }
        self.begun.push((at, begun));
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
            Action::Ask(host) => self.ask(host),
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
            Action::Fence(host) => {
                self.change(host, |world| drop(world.fence()));
            }
            Action::OsdDies(host) => self.is_dead[host] = true,
            Action::OsdReturns(host) => {
                self.is_dead[host] = false;
                self.is_down[host] = false;
            }
            Action::CephNotices(host) => {
                self.is_down[host] = self.is_dead[host] || !self.site.hosts[host].site.is_powered();
            }
        }
    }
}

proptest! {
    #[test]
    fn s11_no_host_of_a_ceph_is_fenced_by_itself_while_another_one_is_lost(
        actions in proptest::collection::vec(action(), 1..120),
    ) {
        let mut storage = Storage::new();
        for action in &actions {
            storage.act(action);
            prop_assert_eq!(&storage.violation, &None, "after {:?}", action);
        }
    }
}

#[test]
fn s11_one_of_all_hosts_of_a_ceph_that_fall_silent_is_fenced() {
    let mut storage = Storage::new();
    for host in 0..HOSTS {
        storage.act(&Action::FallSilent(host));
    }
    for _ in 0..60 {
        for host in 0..HOSTS {
            storage.act(&Action::Ask(host));
            storage.act(&Action::Work(host));
            storage.act(&Action::CephNotices(host));
        }
        storage.act(&Action::Pass(1_000));
    }
    assert_eq!(storage.violation, None);
    let (fenced, others): (Vec<_>, Vec<_>) = storage.site.hosts.iter().partition(|world| world.is_fenced());
    assert_eq!(fenced.len(), 1);
    for world in others {
        let live = world.state.operation.as_ref().unwrap();
        assert_eq!(live.status, OperationStatus::Held);
        assert!(live.detail.contains("not active and clean"), "{}", live.detail);
    }
}
