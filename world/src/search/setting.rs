//! What holds before a history begins: the plan, the segment, the devices, the sources.

use std::collections::BTreeMap;

use rand::RngExt;
use rand::rngs::SmallRng;
use ringfence_core::{
    Backend, EvacuationPolicy, FencingKind, FencingPolicy, FrozenMethod, FrozenPlan, FrozenStage, FrozenTask,
    MethodTimes, ProofKind, SegmentPolicy, SufficientSet, default_sufficient_sets,
};

use super::action::{Action, Theme};
use crate::feed::Manner;
use crate::plans::task_with;
use crate::{Cloud, World};

/// What the clocks of two engines may differ by, in milliseconds.
pub(super) const CLOCKS_APART_MS: i64 = 1_000;

/// A source of a history.
#[derive(Clone, Debug)]
pub struct SimSource {
    /// Its name.
    pub name: String,
    /// By how much its clock is ahead, in milliseconds.
    pub skew_ms: i64,
    /// Milliseconds of silence after which it says UNREACHABLE.
    pub patience_ms: i64,
    /// Whether it says when it last saw the host.
    pub says_last_seen: bool,
    /// Whether it has never heard the host.
    pub is_deaf: bool,
    /// Whether it knows the boot's id.
    pub names_boots: bool,
    /// Whether it knows when the boot began.
    pub dates_boots: bool,
}

/// Everything that holds before a history begins.
#[derive(Clone, Debug)]
pub struct Setting {
    /// What the histories of it are mostly about.
    pub theme: Theme,
    /// How the host is fenced.
    pub plan: FrozenPlan,
    /// What its segment says.
    pub policy: SegmentPolicy,
    /// Where its workloads live, if it has any.
    pub backend: Backend,
    /// How many workloads it has there; none if it is in no such place.
    pub servers: Option<usize>,
    /// How its devices behave.
    pub manners: BTreeMap<String, Manner>,
    /// Who watches it.
    pub sources: Vec<SimSource>,
    /// Milliseconds that a boot takes.
    pub boot_ms: i64,
    /// Milliseconds for which what was written still lands.
    pub lands_ms: i64,
    /// By how much the host's clock is ahead, in milliseconds.
    pub host_skew_ms: i64,
    /// Whether the host's watchdog resets it, so that it boots again.
    pub watchdog_resets: bool,
    /// Whether workers say that it is done whatever they have read.
    pub is_sloppy: bool,
    /// Whether the database is a cache of the host's record, and vanishes at times.
    pub forgets: bool,
}

impl Setting {
    /// The world of this setting before anything has happened.
    #[must_use]
    pub fn world(&self) -> World {
        let mut world = World::new(self.plan.clone(), self.policy.clone());
        world.restarts = false;
        world.records = false;
        if let Some(servers) = self.servers {
            world.state.host.backend = self.backend;
            world.state.host.cloud = Some("east".to_owned());
            world.cloud = Cloud::of(self.backend, servers);
        }
        world.site.manners.clone_from(&self.manners);
        world.site.boot_ms = self.boot_ms;
        world.site.lands_ms = self.lands_ms;
        world.site.shorten_watchdog(CLOCKS_APART_MS);
        world.site.watchdog_resets = self.watchdog_resets;
        world.is_sloppy = self.is_sloppy;
        if self.forgets {
            world.keep_records();
        }
        world
            .site
            .watch_by(self.sources.iter().map(|source| source.name.as_str()));
        for source in self.sources.iter().filter(|source| source.is_deaf) {
            world.site.link(&source.name, false);
        }
        world
    }

    /// Something that happens in it.
    pub(super) fn action(&self, rng: &mut SmallRng) -> Action {
        if self.forgets && rng.random_bool(0.2) {
            Action::of_leaders(rng)
        } else {
            Action::of(self.theme, rng)
        }
    }

    /// All of it, for a person who reads a script.
    #[must_use]
    pub fn in_words(&self) -> String {
        let mut lines = Vec::new();
        for stage in &self.plan.stages {
            for task in &stage.tasks {
                let name = |method: &FrozenMethod| {
                    let manner = self.manners.get(&method.name).copied().unwrap_or_default();
                    format!("{} ({manner:?})", method.name)
                };
                let levels = task
                    .levels
                    .iter()
                    .map(|level| level.iter().map(name).collect::<Vec<_>>().join(" and "));
                let levels = levels.collect::<Vec<_>>().join(", else ");
                let times = task.levels.iter().flatten().next().map(|method| method.times);
                lines.push(format!(
                    "stage after {} s: {} by {levels}; {times:?}",
                    stage.delay_s, task.kind
                ));
            }
        }
        lines.push(format!("sufficient: {:?}", self.plan.sufficient_sets));
        lines.push(format!("{:?}", self.policy));
        lines.extend(self.sources.iter().map(|source| format!("{source:?}")));
        lines.push(format!(
            "{:?} of backend {}, a boot takes {} ms, writes land for {} ms, the host's clock is ahead by {} ms, its watchdog {}",
            self.servers,
            self.backend,
            self.boot_ms,
            self.lands_ms,
            self.host_skew_ms,
            if self.watchdog_resets { "resets it" } else { "switches it off" },
        ));
        lines.join("\n")
    }

    /// Any setting.
    pub fn any(rng: &mut SmallRng) -> Self {
        let theme = Theme::any(rng);
        let plan = plan(theme, rng);
        // What a segment says includes what the clocks of two engines may differ by.
        let settle_s = if rng.random_bool(0.3) {
            rng.random_range(2..8)
        } else {
            0
        };
        let lands_ms = if settle_s > 0 {
            rng.random_range(0..=i64::from(settle_s) * 1_000 - CLOCKS_APART_MS)
        } else {
            0
        };
        let policy = policy(theme, rng, settle_s);
        let names: Vec<String> = devices(&plan);
        Self {
            manners: names.into_iter().map(|name| (name, manner(rng))).collect(),
            backend: if rng.random_bool(0.5) {
                Backend::Nova
            } else {
                Backend::Kubernetes
            },
            servers: (theme == Theme::Evacuation || rng.random_bool(0.6)).then(|| rng.random_range(0..4)),
            theme,
            sources: sources(rng),
            boot_ms: rng.random_range(500..15_000),
            lands_ms,
            host_skew_ms: rng.random_range(-8_000..8_000),
            watchdog_resets: rng.random_bool(0.5),
            is_sloppy: rng.random_bool(0.05),
            forgets: rng.random_bool(0.2),
            plan,
            policy,
        }
    }
}

fn devices(plan: &FrozenPlan) -> Vec<String> {
    let tasks = plan.stages.iter().flat_map(|stage| &stage.tasks);
    let methods = tasks.flat_map(|task| task.levels.iter().flatten());
    methods.map(|method| method.name.clone()).collect()
}

/// None that shows what is not so: of such a device no reading proves anything, and that is for the plan to know.
fn manner(rng: &mut SmallRng) -> Manner {
    match rng.random_range(0..16) {
        0..=8 => Manner::Honest,
        9 => Manner::Lies,
        10 => Manner::OnPaper,
        11 => Manner::Silent,
        12 => Manner::Refuses,
        13 | 14 => Manner::Slow(rng.random_range(100..10_000)),
        _ => Manner::Stale(rng.random_range(100..11_000)),
    }
}

fn sources(rng: &mut SmallRng) -> Vec<SimSource> {
    let names = ["monitor", "platform", "probe"];
    let count = rng.random_range(1..=3);
    let source = |name: &&str, rng: &mut SmallRng| SimSource {
        name: (*name).to_owned(),
        skew_ms: if rng.random_bool(0.3) {
            rng.random_range(-2_000..2_000)
        } else {
            0
        },
        patience_ms: rng.random_range(1_000..20_000),
        says_last_seen: rng.random_bool(0.7),
        is_deaf: rng.random_bool(0.07),
        names_boots: rng.random_bool(0.7),
        dates_boots: rng.random_bool(0.5),
    };
    names[..count].iter().map(|name| source(name, rng)).collect()
}

fn policy(theme: Theme, rng: &mut SmallRng, settle_s: u32) -> SegmentPolicy {
    let (fences_itself, longest) = if theme == Theme::Silence {
        (1.0, 40)
    } else {
        (0.3, 90)
    };
    SegmentPolicy {
        self_fencing_timeout_s: rng
            .random_bool(fences_itself)
            .then(|| rng.random_range(5..longest)),
        settle_s,
        restarts: rng.random_range(0..3),
        restart_delay_s: rng.random_range(1..60),
        auto_rejoin: rng.random_bool(0.5),
        rejoin_wait_s: rng.random_range(1..200),
        workloads_zone: None,
        quarantine: None,
        heartbeats: Vec::new(),
        conditions: Vec::new(),
        alarms: Vec::new(),
        fencing: FencingPolicy {
            automatic: rng.random_bool(0.5),
            after_s: rng.random_range(0..20),
            ..FencingPolicy::default()
        },
        evacuation: EvacuationPolicy {
            automatic: rng.random_bool(0.5),
            at_once: rng.random_range(1..4),
            timeout_s: rng.random_range(10..60),
            retries: rng.random_range(0..3),
            ..EvacuationPolicy::default()
        },
    }
}

fn times(rng: &mut SmallRng) -> MethodTimes {
    let attempt_timeout_s = rng.random_range(1..20);
    MethodTimes {
        attempt_timeout_s,
        timeout_s: attempt_timeout_s + rng.random_range(0..40),
        retries: rng.random_range(0..3),
        pause_ms: rng.random_range(0..2_000),
        settle_s: 0,
        // As long as the slowest of the devices takes.
        lingers_s: Some(rng.random_range(10..15)),
    }
}

fn fencing_task(kind: FencingKind, prefix: &str, rng: &mut SmallRng) -> FrozenTask {
    let levels: Vec<Vec<String>> = (0..rng.random_range(1..3))
        .map(|level| {
            let devices = 0..rng.random_range(1..3);
            devices
                .map(|device| format!("{prefix}-{level}-{device}"))
                .collect()
        })
        .collect();
    let names: Vec<Vec<&str>> = levels
        .iter()
        .map(|level| level.iter().map(String::as_str).collect())
        .collect();
    let names: Vec<&[&str]> = names.iter().map(Vec::as_slice).collect();
    task_with(kind, &names, times(rng))
}

/// Power, storage and network or some of them, in one stage or several, with delays, with or without a reboot.
fn plan(theme: Theme, rng: &mut SmallRng) -> FrozenPlan {
    let mut stages: Vec<FrozenStage> = (0..4)
        .map(|_| FrozenStage {
            delay_s: if rng.random_bool(0.25) {
                rng.random_range(1..20)
            } else {
                0
            },
            tasks: Vec::new(),
        })
        .collect();
    let kinds = [
        (FencingKind::PowerOff, "power"),
        (FencingKind::StorageFence, "storage"),
        (FencingKind::NetworkFence, "network"),
    ];
    let mut has_power = false;
    for (kind, prefix) in kinds {
        if rng.random_bool(likely(theme, kind)) {
            has_power |= kind == FencingKind::PowerOff;
            let task = fencing_task(kind, prefix, rng);
            stages[rng.random_range(0..3)].tasks.push(task);
            if rng.random_bool(0.12) {
                let task = fencing_task(kind, &format!("{prefix}-b"), rng);
                stages[rng.random_range(0..3)].tasks.push(task);
            }
        }
    }
    if has_power && rng.random_bool(0.5) {
        stages[3].tasks.push(FrozenTask {
            kind: FencingKind::PowerOn,
            levels: Vec::new(),
        });
    }
    stages.retain(|stage| !stage.tasks.is_empty());
    FrozenPlan {
        name: "arbitrary".to_owned(),
        stages,
        sufficient_sets: sets(rng),
    }
}

/// How likely a plan has a task.
fn likely(theme: Theme, kind: FencingKind) -> f64 {
    match (theme, kind) {
        (Theme::Silence, _) => 0.2,
        (Theme::Power | Theme::Evacuation, FencingKind::PowerOff) => 0.95,
        (Theme::Power | Theme::Evacuation, _) => 0.25,
        (Theme::Boots, FencingKind::PowerOff) => 0.35,
        (Theme::Boots, _) => 0.95,
        (Theme::Any, _) => 0.6,
    }
}

fn sets(rng: &mut SmallRng) -> Vec<SufficientSet> {
    use ProofKind::{NetworkFence, Operator, PowerOff, SelfFencing, StorageFence};
    let some = |sets: &[&[ProofKind]]| sets.iter().map(|set| set.iter().copied().collect()).collect();
    match rng.random_range(0..11) {
        0 => some(&[&[PowerOff]]),
        1 => some(&[&[StorageFence], &[Operator]]),
        2 => some(&[&[PowerOff, StorageFence]]),
        3 => some(&[&[SelfFencing, StorageFence], &[Operator, PowerOff]]),
        4 => some(&[
            &[StorageFence, NetworkFence],
            &[PowerOff, Operator],
            &[SelfFencing],
        ]),
        5 => some(&[&[PowerOff, NetworkFence]]),
        6 => some(&[&[PowerOff, NetworkFence], &[StorageFence, NetworkFence]]),
        _ => default_sufficient_sets(),
    }
}
