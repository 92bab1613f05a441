//! Hosts that are cut off from storage and network, and their boots.

use ringfence_core::{FencingKind, TaskKind};
use ringfence_world::plans::plan;
use ringfence_world::search::{Setting, SimSource};

use super::parts::{cut_off, fencing, lost, of, once, setting, source};
use crate::{Action, Chance, Chances, Configuration, Goal};

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
            (Chance::Fence, 1),
            (Chance::Cancel, 1),
            (Chance::Step, 2),
            (Chance::Pause, 1),
            (Chance::Heal, 1),
            (Chance::Tell, 1),
            (Chance::Release, 1),
        ]),
        at_a_stroke: kinds(&[FencingKind::NetworkFence, FencingKind::NetworkUnfence]),
        goals: vec![Goal::Fenced, Goal::OpenGate, Goal::RunsFenced, Goal::FenceAsks],
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
            (Chance::Rejoin, 1),
            (Chance::Heal, 1),
            (Chance::Tell, 1),
            (Chance::Step, 2),
            (Chance::Pause, 1),
            (Chance::Stranger, 1),
        ]),
        at_a_stroke: kinds(&[
            FencingKind::StorageFence,
            FencingKind::NetworkFence,
            FencingKind::PowerOn,
            FencingKind::StorageUnfence,
            FencingKind::NetworkUnfence,
        ]),
        goals: vec![
            Goal::Fenced,
            Goal::OpenGate,
            Goal::ProofEnded,
            Goal::RunsFenced,
            Goal::StorageBack,
            Goal::Unfenced,
        ],
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
            (Chance::Rejoin, 1),
            (Chance::Heal, 1),
            (Chance::Tell, 3),
            (Chance::Reboot, 1),
            (Chance::Step, 6),
            (Chance::Pause, 1),
        ]),
        at_a_stroke: kinds(&[
            FencingKind::NetworkFence,
            FencingKind::NetworkUnfence,
            FencingKind::StorageUnfence,
        ]),
        goals: vec![
            Goal::Fenced,
            Goal::OpenGate,
            Goal::StorageBack,
            Goal::Unfenced,
            Goal::RejoinAsks,
        ],
        ..of(name, about, setting)
    }
}

fn kinds(fencing: &[FencingKind]) -> Vec<TaskKind> {
    fencing.iter().copied().map(TaskKind::from).collect()
}
