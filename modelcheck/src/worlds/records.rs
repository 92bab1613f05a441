//! A database that is a cache of records, and vanishes: what is left is the record of the host.

use ringfence_core::{Backend, FencingKind, SegmentPolicy, StepKind, TaskKind};
use ringfence_world::search::{Setting, SimSource};

use super::parts::{cut_off, fencing, lost, of, off_and_on, policy, setting, source};
use super::workloads::{LOOKS, policy_of_a_cloud};
use crate::Chance::*;
use crate::Goal::*;
use crate::{Chances, Configuration};

pub(super) fn all() -> Vec<Configuration> {
    vec![power(), cut(), silence(), moving(), leaders()]
}

fn power() -> Configuration {
    Configuration {
        beginning: fencing(),
        chances: Chances::of(&[(Forget, 1), (Heal, 1), (Tell, 1), (Step, 2)]),
        goals: vec![Fenced, OpenGate, ProofEnded, RunsFenced],
        ..of(
            "forgets",
            "a reboot, of which the engines remember the record alone",
            setting(off_and_on()),
        )
    }
}

/// Each of two processes takes itself for the leader: one was halted, and goes on.
fn leaders() -> Configuration {
    Configuration {
        beginning: fencing(),
        chances: Chances::of(&[
            (TakeOver, 1),
            (Former, 1),
            (Rejoin, 1),
            (Heal, 1),
            (Tell, 1),
            (Step, 1),
        ]),
        goals: vec![Fenced, OpenGate, ProofEnded],
        ..of(
            "leaders",
            "a process that leads, and the one before, which was halted and goes on",
            setting(off_and_on()),
        )
    }
}

fn cut() -> Configuration {
    let named = SimSource {
        names_boots: true,
        ..source("monitor")
    };
    let setting = Setting {
        sources: vec![named],
        ..setting(cut_off())
    };
    Configuration {
        beginning: fencing(),
        chances: Chances::of(&[
            (Forget, 1),
            (Rejoin, 1),
            (Heal, 1),
            (Tell, 2),
            (Reboot, 1),
            (Step, 2),
        ]),
        at_a_stroke: vec![
            FencingKind::NetworkFence.into(),
            FencingKind::NetworkUnfence.into(),
            FencingKind::StorageUnfence.into(),
        ],
        goals: vec![Fenced, OpenGate, RunsFenced, RejoinAsks],
        ..of(
            "forgets-cut",
            "a host that is cut off, of which the engines remember the record alone",
            setting,
        )
    }
}

fn silence() -> Configuration {
    let setting = Setting {
        policy: SegmentPolicy {
            self_fencing_timeout_s: Some(6),
            ..policy()
        },
        sources: vec![source("monitor"), source("probe")],
        ..setting(off_and_on())
    };
    Configuration {
        beginning: lost(),
        chances: Chances::of(&[(Forget, 1), (Fence, 1), (Cut, 1), (Tell, 3), (Step, 2)]),
        at_a_stroke: vec![FencingKind::PowerOff.into(), FencingKind::PowerOn.into()],
        goals: vec![Fenced, OpenGate],
        ..of(
            "forgets-silence",
            "a host that fences itself, of which the engines remember the record alone",
            setting,
        )
    }
}

fn moving() -> Configuration {
    let setting = Setting {
        backend: Backend::Kubernetes,
        servers: Some(1),
        policy: policy_of_a_cloud(true),
        ..setting(off_and_on())
    };
    let at_a_stroke = LOOKS
        .into_iter()
        .chain([StepKind::Isolate, StepKind::MarkDown, StepKind::Empty]);
    let at_a_stroke = at_a_stroke.map(TaskKind::from);
    Configuration {
        beginning: fencing(),
        chances: Chances::of(&[(Forget, 1), (Tell, 1), (Step, 3)]),
        at_a_stroke: at_a_stroke.collect(),
        goals: vec![Fenced, OpenGate, Evacuating, Moved, RunsFenced],
        ..of(
            "forgets-moving",
            "a workload is moved, of which the engines remember the record alone",
            setting,
        )
    }
}
