//! Arbitrary plans, segments and devices.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::select;
use ringfence_core::*;

use super::actions::SICKNESS;
use ringfence_world::Cloud;
use ringfence_world::Manner;
use ringfence_world::World;
use ringfence_world::plans::task_with;

/// The fixed parts of a world.
#[derive(Clone, Debug)]
pub struct Setting {
    pub plan: FrozenPlan,
    pub policy: SegmentPolicy,
    pub backend: Backend,
    /// Whether the host names its cloud, and the number of its servers there.
    pub servers: Option<usize>,
    pub manners: BTreeMap<String, Manner>,
    /// Milliseconds until accepted writes have landed; never longer than the segment's settling time.
    pub lands_ms: i64,
}

impl Setting {
    pub fn world(&self) -> World {
        let mut world = World::new(self.plan.clone(), self.policy.clone());
        world.restarts = false;
        world.state.host.backend = self.backend;
        world.state.host.cloud = self.servers.map(|_| "east".to_owned());
        world.cloud = Cloud::of(self.backend, self.servers.unwrap_or_default());
        world.site.manners.clone_from(&self.manners);
        world.site.lands_ms = self.lands_ms;
        world
    }
}

pub fn setting() -> impl Strategy<Value = Setting> {
    let backend = select(vec![Backend::None, Backend::Nova, Backend::Kubernetes]);
    let servers = proptest::option::weighted(0.8, 0..5_usize);
    let manners = proptest::collection::vec(manner(), 12);
    let worlds = (plan(), policy(), backend, servers, manners, any::<bool>());
    worlds.prop_map(|(plan, policy, backend, servers, manners, lands)| Setting {
        manners: methods(&plan)
            .zip(manners)
            .map(|(method, manner)| (method.name.clone(), in_time(manner, method)))
            .collect(),
        lands_ms: if lands {
            i64::from(policy.settle_s) * 1_000
        } else {
            0
        },
        plan,
        policy,
        backend,
        servers,
    })
}

/// Limits a device's delay to what its method allows.
fn in_time(manner: Manner, method: &FrozenMethod) -> Manner {
    let lingers_ms = method.times.lingers_s.unwrap_or(10) * 1_000;
    match manner {
        Manner::Slow(_) if lingers_ms == 0 => Manner::Honest,
        Manner::Slow(delay_ms) => Manner::Slow(delay_ms.min(lingers_ms - 1)),
        other => other,
    }
}

/// A [`setting`] with the default sufficient sets.
pub fn plain_setting() -> impl Strategy<Value = Setting> {
    setting().prop_map(|mut setting| {
        setting.plan.sufficient_sets = default_sufficient_sets();
        setting
    })
}

pub fn methods(plan: &FrozenPlan) -> impl Iterator<Item = &FrozenMethod> {
    let tasks = plan.stages.iter().flat_map(|stage| &stage.tasks);
    tasks.flat_map(|task| task.levels.iter().flatten())
}

fn manner() -> impl Strategy<Value = Manner> {
    prop_oneof![
        8 => Just(Manner::Honest),
        1 => Just(Manner::Lies),
        1 => Just(Manner::OnPaper),
        1 => Just(Manner::Silent),
        1 => Just(Manner::Refuses),
        1 => (100..20_000_u32).prop_map(Manner::Slow),
        1 => (100..20_000_u32).prop_map(Manner::Stale),
    ]
}

fn policy() -> impl Strategy<Value = SegmentPolicy> {
    let watchdog = prop_oneof![2 => Just(None), 1 => (5..120_u32).prop_map(Some)];
    let settle_s = prop_oneof![2 => Just(0), 1 => 0..=10_u32];
    (
        watchdog,
        settle_s,
        0..3_u32,
        1..60_u32,
        any::<bool>(),
        1..200_u32,
        evacuation(),
        (fencing(), conditions(), quarantine(), alarms()),
    )
        .prop_map(
            |(
                self_fencing_timeout_s,
                settle_s,
                restarts,
                restart_delay_s,
                auto_rejoin,
                rejoin_wait_s,
                evacuation,
                (fencing, conditions, quarantine, alarms),
            )| {
                SegmentPolicy {
                    self_fencing_timeout_s,
                    settle_s,
                    restarts,
                    restart_delay_s,
                    auto_rejoin,
                    rejoin_wait_s,
                    workloads_zone: None,
                    heartbeats: Vec::new(),
                    quarantine,
                    conditions,
                    alarms,
                    fencing,
                    evacuation,
                }
            },
        )
}

fn quarantine() -> impl Strategy<Value = Option<QuarantinePolicy>> {
    let policy =
        (2..4_u32, 60..90_000_u32).prop_map(|(fences, within_s)| QuarantinePolicy { fences, within_s });
    proptest::option::weighted(0.3, policy)
}

/// What comes too often.
fn alarms() -> impl Strategy<Value = Vec<AlarmRule>> {
    let sickness = proptest::option::weighted(0.5, Just(SICKNESS.to_owned()));
    let rule = (select(HostProblem::ALL.to_vec()), sickness, 1..4_u32, 60..900_u32).prop_map(
        |(problem, condition, times, within_s)| AlarmRule {
            condition: condition.filter(|_| problem == HostProblem::Condition),
            problem,
            times,
            within_s,
        },
    );
    proptest::collection::vec(rule, 0..4)
}

/// What is done about the sickness that a problem detector may tell of.
fn conditions() -> impl Strategy<Value = Vec<ConditionRule>> {
    let rule = (0..60_u32, select(ConditionAction::ALL.to_vec())).prop_map(|(for_s, action)| ConditionRule {
        condition: SICKNESS.to_owned(),
        status: ConditionStatus::True,
        for_s,
        action,
    });
    proptest::collection::vec(rule, 0..2)
}

fn fencing() -> impl Strategy<Value = FencingPolicy> {
    let at_once = proptest::option::weighted(0.3, 1..3_u32);
    let per_minute = proptest::option::weighted(0.2, 1..3_u32);
    (any::<bool>(), at_once, per_minute).prop_map(|(automatic, at_once, per_minute)| FencingPolicy {
        automatic,
        at_once,
        per_minute,
        ..FencingPolicy::default()
    })
}

fn evacuation() -> impl Strategy<Value = EvacuationPolicy> {
    (any::<bool>(), 1..4_u32, 10..60_u32, 0..3_u32, 0..3_usize).prop_map(
        |(automatic, at_once, timeout_s, retries, spares)| EvacuationPolicy {
            automatic,
            at_once,
            timeout_s,
            retries,
            spare_hosts: (1..=spares).map(|number| format!("spare-{number}")).collect(),
            ..EvacuationPolicy::default()
        },
    )
}

fn times() -> impl Strategy<Value = MethodTimes> {
    let settle_s = prop_oneof![4 => Just(0), 1 => 0..5_u32];
    let lingers_s = proptest::option::of(0..20_u32);
    let times = (1..20_u32, 0..40_u32, 0..3_u32, 0..2_000_u32, settle_s, lingers_s);
    times.prop_map(
        |(attempt, more, retries, pause_ms, settle_s, lingers_s)| MethodTimes {
            attempt_timeout_s: attempt,
            timeout_s: attempt + more,
            retries,
            pause_ms,
            settle_s,
            lingers_s,
        },
    )
}

/// Levels as numbers of devices: one level with two devices, two levels with one device each, ...
fn shape() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(1..3_usize, 1..3)
}

fn fencing_task(kind: FencingKind, prefix: &'static str) -> impl Strategy<Value = FrozenTask> {
    (shape(), times()).prop_map(move |(shape, times)| {
        let names: Vec<Vec<String>> = shape
            .iter()
            .enumerate()
            .map(|(level, devices)| (0..*devices).map(|d| format!("{prefix}-{level}-{d}")).collect())
            .collect();
        let levels: Vec<Vec<&str>> = names
            .iter()
            .map(|level| level.iter().map(String::as_str).collect())
            .collect();
        let levels: Vec<&[&str]> = levels.iter().map(Vec::as_slice).collect();
        task_with(kind, &levels, times)
    })
}

/// Power, storage and network, or some of them, in one stage or several, with or without delays and a reboot.
fn plan() -> impl Strategy<Value = FrozenPlan> {
    let power = proptest::option::weighted(0.6, fencing_task(FencingKind::PowerOff, "power"));
    let storage = proptest::option::weighted(0.6, fencing_task(FencingKind::StorageFence, "storage"));
    let network = proptest::option::weighted(0.6, fencing_task(FencingKind::NetworkFence, "network"));
    let places = proptest::array::uniform3(0..3_usize);
    let delays = proptest::array::uniform4(prop_oneof![3 => Just(0_u32), 1 => 1..20_u32]);
    (power, storage, network, places, delays, any::<bool>(), sets()).prop_map(
        |(power, storage, network, places, delays, reboots, sufficient_sets)| {
            let mut stages: Vec<FrozenStage> = delays
                .iter()
                .map(|delay_s| FrozenStage {
                    delay_s: *delay_s,
                    tasks: Vec::new(),
                })
                .collect();
            let reboots = reboots && power.is_some();
            for (task, place) in [power, storage, network].into_iter().zip(places) {
                stages[place].tasks.extend(task);
            }
            if reboots {
                stages[3].tasks.push(FrozenTask {
                    kind: FencingKind::PowerOn,
                    levels: Vec::new(),
                });
            }
            stages.retain(|stage| !stage.tasks.is_empty());
            FrozenPlan {
                name: "arbitrary".to_owned(),
                stages,
                sufficient_sets,
            }
        },
    )
}

fn sets() -> impl Strategy<Value = Vec<SufficientSet>> {
    use ProofKind::{NetworkFence, Operator, PowerOff, SelfFencing, StorageFence};
    let some = |sets: &[&[ProofKind]]| sets.iter().map(|set| set.iter().copied().collect()).collect();
    prop_oneof![
        6 => Just(default_sufficient_sets()),
        1 => Just(some(&[&[PowerOff]])),
        1 => Just(some(&[&[StorageFence], &[Operator]])),
        1 => Just(some(&[&[PowerOff, StorageFence]])),
        1 => Just(some(&[&[SelfFencing, StorageFence], &[Operator, PowerOff]])),
        1 => Just(some(&[&[StorageFence, NetworkFence], &[PowerOff, Operator], &[SelfFencing]])),
    ]
}
