//! Workloads that are started elsewhere, and hosts of a cloud that are taken back.

use ringfence_core::{Backend, EvacuationPolicy, SegmentPolicy, StepKind, TaskKind};
use ringfence_world::search::Setting;

use super::parts::{cut_suffices, fenced, fencing, of, off, off_and_on, policy, setting};
use crate::Chance::*;
use crate::Goal::*;
use crate::{Chances, Configuration};

/// Tasks by which nothing can go wrong on their way.
pub(super) const LOOKS: [StepKind; 4] = [
    StepKind::MarkUp,
    StepKind::List,
    StepKind::CleanUp,
    StepKind::Start,
];

pub(super) fn all() -> Vec<Configuration> {
    vec![
        mark_down(),
        evacuation(),
        by_itself(),
        cloud_rejoin(),
        given_back(),
    ]
}

pub(super) fn policy_of_a_cloud(automatic: bool) -> SegmentPolicy {
    SegmentPolicy {
        evacuation: EvacuationPolicy {
            automatic,
            timeout_s: 10,
            retries: 0,
            ..EvacuationPolicy::default()
        },
        ..policy()
    }
}

/// The tasks that look, and those whose way `mark-down` explores.
fn at_a_stroke() -> Vec<TaskKind> {
    let looks = LOOKS.into_iter().chain([StepKind::MarkDown]);
    looks.map(TaskKind::from).collect()
}

fn mark_down() -> Configuration {
    let setting = Setting {
        backend: Backend::Kubernetes,
        servers: Some(0),
        policy: policy_of_a_cloud(false),
        ..setting(off_and_on())
    };
    Configuration {
        beginning: fencing(),
        chances: Chances::of(&[(Heal, 1), (Tell, 1), (Step, 3)]),
        at_a_stroke: LOOKS
            .into_iter()
            .chain([StepKind::Isolate])
            .map(TaskKind::from)
            .collect(),
        goals: vec![Fenced, OpenGate, ProofEnded, RunsFenced],
        ..of(
            "mark-down",
            "a cluster is told that a host is down whose power is on its way back",
            setting,
        )
    }
}

fn evacuation() -> Configuration {
    let setting = Setting {
        servers: Some(1),
        policy: policy_of_a_cloud(false),
        ..setting(off())
    };
    Configuration {
        beginning: fenced(),
        chances: Chances::of(&[
            (Evacuate, 1),
            (Rejoin, 1),
            (Heal, 1),
            (Tell, 1),
            (Step, 3),
            (Pause, 1),
            (Stranger, 1),
        ]),
        at_a_stroke: at_a_stroke(),
        goals: vec![Fenced, OpenGate, Evacuating, Moved, ProofEnded],
        ..of(
            "evacuation",
            "a workload is started elsewhere, and its host may come back",
            setting,
        )
    }
}

fn by_itself() -> Configuration {
    let setting = Setting {
        servers: Some(1),
        policy: policy_of_a_cloud(true),
        ..setting(off_and_on())
    };
    Configuration {
        beginning: fencing(),
        chances: Chances::of(&[(Heal, 1), (Tell, 1), (Step, 5), (Pause, 1)]),
        at_a_stroke: at_a_stroke(),
        goals: vec![Fenced, OpenGate, Evacuating, Moved, RunsFenced],
        ..of(
            "by-itself",
            "an evacuation that begins by itself, before the power comes back",
            setting,
        )
    }
}

fn cloud_rejoin() -> Configuration {
    let setting = Setting {
        servers: Some(1),
        policy: policy_of_a_cloud(false),
        ..setting(off())
    };
    Configuration {
        beginning: fenced(),
        chances: Chances::of(&[
            (Rejoin, 1),
            (Fence, 1),
            (Heal, 1),
            (Cut, 1),
            (Tell, 3),
            (Step, 3),
            (Cloud, 1),
        ]),
        at_a_stroke: at_a_stroke(),
        goals: vec![Fenced, OpenGate, Unfenced, RejoinAsks],
        ..of(
            "cloud-rejoin",
            "a host of a cloud is taken back, in order",
            setting,
        )
    }
}

fn given_back() -> Configuration {
    let setting = Setting {
        servers: Some(1),
        policy: policy_of_a_cloud(false),
        ..setting(cut_suffices())
    };
    Configuration {
        beginning: fenced(),
        chances: Chances::of(&[
            (Evacuate, 1),
            (Cancel, 1),
            (Rejoin, 1),
            (Release, 1),
            (Step, 3),
            (Pause, 1),
        ]),
        at_a_stroke: at_a_stroke(),
        goals: vec![Fenced, OpenGate, Evacuating, Moved, StorageBack],
        ..of(
            "given-back",
            "storage is given back by hand while a workload may still be started elsewhere",
            setting,
        )
    }
}
