//! What small worlds are made of.

use std::collections::BTreeMap;

use ringfence_core::{Backend, FencingKind, FrozenPlan, FrozenTask, MethodTimes, ProofKind, SegmentPolicy};
use ringfence_world::plans::{plan, task_with};
use ringfence_world::search::{Setting, SimSource, Theme};

use crate::{Action, Chances, Configuration};

/// Short times: their order matters more than they do.
const TIMES: MethodTimes = MethodTimes {
    attempt_timeout_s: 5,
    timeout_s: 8,
    retries: 1,
    pause_ms: 1_000,
    settle_s: 0,
    lingers_s: Some(4),
};

pub(super) fn task(kind: FencingKind, levels: &[&[&str]]) -> FrozenTask {
    task_with(kind, levels, TIMES)
}

/// A task that is tried once.
pub(super) fn once(kind: FencingKind, levels: &[&[&str]]) -> FrozenTask {
    let times = MethodTimes { retries: 0, ..TIMES };
    task_with(kind, levels, times)
}

/// The power goes off.
pub(super) fn off() -> FrozenPlan {
    plan(vec![vec![task(FencingKind::PowerOff, &[&["bmc"]])]])
}

/// The power goes off and on again.
pub(super) fn off_and_on() -> FrozenPlan {
    let off = task(FencingKind::PowerOff, &[&["bmc"]]);
    plan(vec![vec![off], vec![task(FencingKind::PowerOn, &[])]])
}

/// The host is cut off from storage and network.
pub(super) fn cut_off() -> FrozenPlan {
    let storage = once(FencingKind::StorageFence, &[&["ceph"]]);
    plan(vec![vec![
        storage,
        once(FencingKind::NetworkFence, &[&["switch"]]),
    ]])
}

/// The host is cut off from its storage, and that suffices.
pub(super) fn cut_suffices() -> FrozenPlan {
    FrozenPlan {
        sufficient_sets: vec![[ProofKind::StorageFence].into()],
        ..plan(vec![vec![once(FencingKind::StorageFence, &[&["ceph"]])]])
    }
}

pub(super) fn policy() -> SegmentPolicy {
    SegmentPolicy {
        settle_s: 0,
        rejoin_wait_s: 20,
        ..SegmentPolicy::default()
    }
}

/// A source that says what it knows.
pub(super) fn source(name: &str) -> SimSource {
    SimSource {
        name: name.to_owned(),
        skew_ms: 0,
        patience_ms: 2_000,
        says_last_seen: true,
        is_deaf: false,
        names_boots: false,
        dates_boots: false,
    }
}

/// One honest host, with one source.
pub(super) fn setting(plan: FrozenPlan) -> Setting {
    Setting {
        theme: Theme::Any,
        plan,
        policy: policy(),
        backend: Backend::Nova,
        servers: None,
        manners: BTreeMap::new(),
        sources: vec![source("monitor")],
        boot_ms: 3_000,
        lands_ms: 0,
        host_skew_ms: 0,
        watchdog_resets: false,
        is_sloppy: false,
        forgets: false,
    }
}

/// The host has fallen silent, and its source has said so.
pub(super) fn lost() -> Vec<Action> {
    vec![Action::Cut(0), Action::Step, Action::Tell(0)]
}

/// And a person has asked for a fence.
pub(super) fn fencing() -> Vec<Action> {
    [lost(), vec![Action::Fence]].concat()
}

/// And a worker has carried its first task out.
pub(super) fn fenced() -> Vec<Action> {
    [fencing(), vec![Action::Work(0)]].concat()
}

/// A configuration in which nothing may happen yet.
pub(super) fn of(name: &'static str, about: &'static str, setting: Setting) -> Configuration {
    Configuration {
        name,
        about,
        setting,
        beginning: Vec::new(),
        chances: Chances::of(&[]),
        at_a_stroke: Vec::new(),
        pause_ms: 2_000,
        goals: Vec::new(),
    }
}
