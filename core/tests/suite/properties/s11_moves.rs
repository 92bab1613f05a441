//! S11: no more workloads of the hosts of a segment, or of a platform, are moved at one time or begun within a minute than may be, and those of the highest priority come first.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use ringfence_core::*;
use ringfence_world::World;
use ringfence_world::cloud::HOST;
use uuid::Uuid;

use super::site::command_newest;
use crate::scenarios::on_nova::fenced;

const HOSTS: usize = 4;
const SERVERS: usize = 3;

/// Hosts of two segments on one platform.
struct Site {
    hosts: Vec<World>,
    policies: BTreeMap<SegmentId, EvacuationPolicy>,
    /// When each evacuation told each workload to a worker first.
    begun: Vec<BTreeMap<(OperationId, String), Timestamp>>,
    /// Evacuations that are over.
    ended: Vec<Evacuating>,
    /// A turn is given, and its answer is heard.
    is_turn: bool,
}

#[derive(Clone, Debug)]
enum Action {
    Evacuate(usize),
    Pass(u16),
    /// Workers do everything that they were told of a host.
    Work(usize),
    /// A worker begins the newest move of a host, and is not heard of again.
    Vanish(usize),
    Cancel(usize),
    /// An engine gives turns.
    Give,
    /// An engine gives turns, and hears of none whether its moves began.
    GiveUnheard,
}

fn action() -> impl Strategy<Value = Action> {
    let host = || 0..HOSTS;
    prop_oneof![
        2 => host().prop_map(Action::Evacuate),
        4 => (0..20_000_u16).prop_map(Action::Pass),
        4 => host().prop_map(Action::Work),
        1 => host().prop_map(Action::Vanish),
        1 => host().prop_map(Action::Cancel),
        4 => Just(Action::Give),
        1 => Just(Action::GiveUnheard),
    ]
}

fn limits() -> impl Strategy<Value = Option<MoveLimits>> {
    let bound = || proptest::option::of(1..5_u32);
    (bound(), bound()).prop_map(|(at_once, per_minute)| {
        at_once.or(per_minute)?;
        Some(MoveLimits { at_once, per_minute })
    })
}

fn segment_of(host: usize) -> SegmentId {
    SegmentId(Uuid::from_u128(host as u128 % 2))
}

fn name_of(host: usize, server: usize) -> String {
    format!("s{host}-{server}")
}

impl Site {
    fn new(limits: [Option<MoveLimits>; 4], priorities: &[i64]) -> Self {
        let policy = |of: usize| EvacuationPolicy {
            in_segment: limits[of],
            on_platform: limits[of + 2],
            ..EvacuationPolicy::default()
        };
        let host = |host: usize| {
            let mut world = fenced(0, policy(host % 2));
            world.records = false;
            world.restarts = false;
            for server in 0..SERVERS {
                let priority = priorities[host * SERVERS + server].to_string();
                world
                    .cloud
                    .add(&name_of(host, server), &[("evacuation_priority", &priority)]);
            }
            world
        };
        Self {
            hosts: (0..HOSTS).map(host).collect(),
            policies: [0, 1].map(|of| (segment_of(of), policy(of))).into(),
            begun: vec![BTreeMap::new(); HOSTS],
            ended: Vec::new(),
            is_turn: false,
        }
    }

    fn act(&mut self, action: &Action) -> Result<(), TestCaseError> {
        match action {
            Action::Evacuate(host) => self.change(*host, |world| drop(world.evacuate())),
            Action::Pass(ms) => {
                let pass = |world: &mut World| {
                    world.pass(i64::from(*ms));
                    drop(world.see(FailureState::Unreachable));
                };
                (0..HOSTS).try_for_each(|host| self.change(host, pass))
            }
            Action::Work(host) => self.change(*host, World::work_off),
            Action::Vanish(host) => self.change(*host, command_newest),
            Action::Cancel(host) if self.evacuating(*host).is_none() => Ok(()),
            Action::Cancel(host) => self.change(*host, |world| drop(world.cancel())),
            Action::Give => self.give(true),
            Action::GiveUnheard => self.give(false),
        }
    }

    fn evacuating(&self, host: usize) -> Option<Evacuating> {
        let operation = self.hosts[host].state.operation.as_ref()?;
        Some(Evacuating {
            host_id: HostId(Uuid::from_u128(host as u128)),
            segment_id: segment_of(host),
            since: operation.created_at,
            queue: operation.move_queue()?,
        })
    }

    fn give(&mut self, is_heard: bool) -> Result<(), TestCaseError> {
        let live = (0..HOSTS)
            .filter_map(|host| self.evacuating(host))
            .collect::<Vec<_>>();
        let all = self.ended.clone().into_iter().chain(live);
        let policies = self.policies.clone();
        let mut turns = Turns::new(all.collect(), &policies, self.hosts[0].now);
        while let Some(turn) = turns.next_turn() {
            let host = usize::try_from(turn.host_id.0.as_u128()).unwrap();
            let at_most = turn.at_most;
            self.is_turn = is_heard;
            let given = self.change(host, |world| drop(world.give(Input::BeginMoves { at_most })));
            self.is_turn = false;
            given?;
            let queue = self.evacuating(host).map(|one| one.queue);
            turns.took(turn, queue.filter(|_| is_heard));
        }
        Ok(())
    }

    fn change(&mut self, host: usize, change: impl FnOnce(&mut World)) -> Result<(), TestCaseError> {
        let before = self.evacuating(host);
        change(&mut self.hosts[host]);
        if self.evacuating(host).is_none() {
            // What it has begun counts for a minute.
            self.ended.extend(before.map(|mut over| {
                over.queue.under_way = 0;
                over.queue.waiting.clear();
                over
            }));
        }
        self.judge(host)
    }

    /// What the workers were told, and what the platform has done.
    fn judge(&mut self, host: usize) -> Result<(), TestCaseError> {
        let world = &self.hosts[host];
        for dispatch in &world.sent {
            let Job::Step {
                step: WorkloadStep::Move(step),
                ..
            } = &dispatch.job
            else {
                continue;
            };
            let name = &step.workload.name;
            let of = (dispatch.attempt.operation_id, name.clone());
            // What another worker has begun is looked at without a turn.
            if step.only_look || self.begun[host].contains_key(&of) {
                continue;
            }
            self.begun[host].insert(of, world.now);
            // One that has had its turn before begins when nothing else can move it.
            if self.is_turn {
                self.comes_first(host, name)?;
            }
        }
        let now = world.now;
        for (segment, policy) in &self.policies {
            let has_begun = self.begun.iter().enumerate().any(|(at, begun)| {
                segment_of(at) == *segment && begun.values().any(|begun_at| *begun_at == now)
            });
            let of_segment: BTreeSet<usize> = (0..HOSTS).filter(|at| segment_of(*at) == *segment).collect();
            self.is_within(policy.in_segment, &of_segment)?;
            // Moves of another segment, which says less of the platform, may begin at any time.
            let all_bounded = self
                .policies
                .values()
                .all(|other| other.on_platform == policy.on_platform);
            if has_begun && all_bounded {
                self.is_within(policy.on_platform, &(0..HOSTS).collect())?;
            }
        }
        Ok(())
    }

    fn is_within(&self, limits: Option<MoveLimits>, hosts: &BTreeSet<usize>) -> Result<(), TestCaseError> {
        let Some(MoveLimits { at_once, per_minute }) = limits else {
            return Ok(());
        };
        let now = self.hosts[0].now;
        let is_under_way = |host: usize, (operation, name): &(OperationId, String)| {
            let world = &self.hosts[host];
            let live = world.state.operation.as_ref().map(|live| live.id);
            world.cloud.servers[name].on == HOST && live == Some(*operation)
        };
        let all = hosts
            .iter()
            .flat_map(|host| self.begun[*host].iter().map(|one| (*host, one)));
        let under_way = all
            .clone()
            .filter(|(host, (of, _))| is_under_way(*host, of))
            .count();
        let lately = all.filter(|(_, (_, at))| (now - **at).num_seconds() < 60).count();
        prop_assert!(
            at_once.is_none_or(|limit| under_way <= limit as usize),
            "{under_way} under way"
        );
        prop_assert!(
            per_minute.is_none_or(|limit| lately <= limit as usize),
            "{lately} begun"
        );
        Ok(())
    }

    /// No workload of a higher priority waits on a host of the segment.
    fn comes_first(&self, host: usize, name: &str) -> Result<(), TestCaseError> {
        let policy = &self.policies[&segment_of(host)];
        let priority = |at: usize, name: &str| policy.priority(&self.hosts[at].cloud.servers[name].workload);
        let own = priority(host, name);
        for other in (0..HOSTS).filter(|other| segment_of(*other) == segment_of(host)) {
            let operation = self.hosts[other].state.operation.as_ref();
            let moves = operation.map(Operation::moves).unwrap_or_default();
            let waiting = moves.iter().filter(|task| task.status == TaskStatus::Pending);
            for workload in waiting.filter_map(|task| task.workload()) {
                let waits = priority(other, &workload.name);
                prop_assert!(
                    waits <= own,
                    "{} of {waits} waits for {name} of {own}",
                    workload.name
                );
            }
        }
        Ok(())
    }
}

fn four_limits() -> impl Strategy<Value = [Option<MoveLimits>; 4]> {
    [limits(), limits(), limits(), limits()]
}

proptest! {
    #[test]
    fn s11_moves_of_many_hosts_are_bounded_and_go_by_priority(
        limits in four_limits(),
        priorities in proptest::collection::vec(-1..3_i64, HOSTS * SERVERS),
        actions in proptest::collection::vec(action(), 1..80),
    ) {
        let mut site = Site::new(limits, &priorities);
        for action in &actions {
            site.act(action)?;
        }
        // In the end all of them have moved, unless a worker has to be waited for.
        for host in 0..HOSTS {
            site.act(&Action::Evacuate(host))?;
        }
        for _ in 0..HOSTS * SERVERS {
            for host in 0..HOSTS {
                site.act(&Action::Work(host))?;
            }
            // What has begun counts by whole seconds, so for up to 61 s.
            site.act(&Action::Pass(61_000))?;
            site.act(&Action::Give)?;
        }
        for host in 0..HOSTS {
            site.act(&Action::Work(host))?;
        }
        let has_vanished = actions.iter().any(|action| matches!(action, Action::Vanish(_)));
        for world in site.hosts.iter().filter(|_| !has_vanished) {
            prop_assert!(world.cloud.on(HOST).is_empty(), "{:?}", world.cloud.on(HOST));
        }
    }
}
