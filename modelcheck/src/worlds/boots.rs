//! Hosts that are cut off from storage and network, and their boots.

use ringfence_core::{FencingKind, TaskKind};
use ringfence_world::plans::plan;
use ringfence_world::search::{Setting, SimSource};

use super::parts::{cut_off, fencing, lost, of, once, setting, source};
use crate::Chance::*;
use crate::Goal::*;
use crate::{Action, Chances, Configuration};

pub(super) fn all() -> Vec<Configuration> {
    let named = SimSource {
        names_boots: true,
        ..source("monitor")
    };
    let dated = SimSource {
        dates_boots: true,
        ..named.clone()
    };
    vec![
        cut(),
        whole(),
        boots(
            "boots-named",
            "a host that is cut off, and a source that names its boots",
            named,
        ),
        boots(
            "boots-dated",
            "a host that is cut off, and a source that names and dates its boots",
            dated,
        ),
    ]
}

fn cut() -> Configuration {
    Configuration {
        beginning: fencing(),
        chances: Chances::of(&[
            (Fence, 1),
            (Cancel, 1),
            (Step, 2),
            (Pause, 1),
            (Heal, 1),
            (Tell, 1),
            (Release, 1),
        ]),
        at_a_stroke: kinds(&[FencingKind::NetworkFence, FencingKind::NetworkUnfence]),
        goals: vec![Fenced, OpenGate, RunsFenced, FenceAsks],
        ..of(
            "cut",
            "a host that is cut off from storage and network",
            setting(cut_off()),
        )
    }
}

/// A boot began that no source has seen, and was cut off from storage.
fn rebooted_and_cut() -> Vec<Action> {
    let rebooted = [lost(), vec![Action::Reboot, Action::Step]].concat();
    [rebooted, vec![Action::Fence, Action::Work(0)]].concat()
}

fn whole() -> Configuration {
    let storage = once(FencingKind::StorageFence, &[&["ceph"]]);
    let network = once(FencingKind::NetworkFence, &[&["switch"]]);
    let power = once(FencingKind::PowerOff, &[&["bmc"]]);
    Configuration {
        beginning: fencing(),
        chances: Chances::of(&[
            (Rejoin, 1),
            (Heal, 1),
            (Tell, 1),
            (Step, 2),
            (Pause, 1),
            (Stranger, 1),
        ]),
        at_a_stroke: kinds(&[
            FencingKind::StorageFence,
            FencingKind::NetworkFence,
            FencingKind::PowerOn,
            FencingKind::StorageUnfence,
            FencingKind::NetworkUnfence,
        ]),
        goals: vec![Fenced, OpenGate, ProofEnded, RunsFenced, StorageBack, Unfenced],
        ..of(
            "whole",
            "a host that loses power, storage and network, in any order",
            setting(plan(vec![vec![storage, network, power]])),
        )
    }
}

fn boots(name: &'static str, about: &'static str, monitor: SimSource) -> Configuration {
    let setting = Setting {
        sources: vec![monitor],
        host_skew_ms: 4_000,
        ..setting(cut_off())
    };
    Configuration {
        beginning: rebooted_and_cut(),
        chances: Chances::of(&[
            (Rejoin, 1),
            (Heal, 1),
            (Tell, 3),
            (Reboot, 1),
            (Step, 6),
            (Pause, 1),
        ]),
        at_a_stroke: kinds(&[
            FencingKind::NetworkFence,
            FencingKind::NetworkUnfence,
            FencingKind::StorageUnfence,
        ]),
        goals: vec![Fenced, OpenGate, StorageBack, Unfenced, RejoinAsks],
        ..of(name, about, setting)
    }
}

fn kinds(fencing: &[FencingKind]) -> Vec<TaskKind> {
    fencing.iter().copied().map(TaskKind::from).collect()
}
