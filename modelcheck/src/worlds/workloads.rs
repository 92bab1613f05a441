//! Workloads that are started elsewhere, and hosts of a cloud that are taken back.

use ringfence_core::{EvacuationPolicy, SegmentPolicy, StepKind, TaskKind};
use ringfence_world::search::Setting;

use super::parts::{fenced, fencing, of, off, off_and_on, policy, setting};
use crate::{Chance, Chances, Configuration, Goal};

/// Tasks by which nothing can go wrong on their way.
const LOOKS: [StepKind; 5] = [
    StepKind::MarkDown,
    StepKind::MarkUp,
    StepKind::List,
    StepKind::CleanUp,
    StepKind::Start,
];

pub(super) fn all() -> Vec<Configuration> {
    vec![evacuation(), by_itself(), cloud_rejoin()]
}

fn policy_of_a_cloud(automatic: bool) -> SegmentPolicy {
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

fn evacuation() -> Configuration {
    let setting = Setting {
        servers: Some(1),
        policy: policy_of_a_cloud(false),
        ..setting(off())
    };
    Configuration {
        beginning: fenced(),
        chances: Chances::of(&[
            (Chance::Evacuate, 1),
            (Chance::Rejoin, 1),
            (Chance::Heal, 1),
            (Chance::Tell, 1),
            (Chance::Step, 3),
            (Chance::Pause, 1),
            (Chance::Stranger, 1),
        ]),
        at_a_stroke: LOOKS.map(TaskKind::from).to_vec(),
        goals: vec![
            Goal::Fenced,
            Goal::OpenGate,
            Goal::Evacuating,
            Goal::Moved,
            Goal::ProofEnded,
        ],
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
        chances: Chances::of(&[
            (Chance::Heal, 1),
            (Chance::Tell, 1),
            (Chance::Step, 5),
            (Chance::Pause, 1),
        ]),
        at_a_stroke: LOOKS.map(TaskKind::from).to_vec(),
        goals: vec![
            Goal::Fenced,
            Goal::OpenGate,
            Goal::Evacuating,
            Goal::Moved,
            Goal::RunsFenced,
        ],
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
            (Chance::Rejoin, 1),
            (Chance::Fence, 1),
            (Chance::Heal, 1),
            (Chance::Cut, 1),
            (Chance::Tell, 3),
            (Chance::Step, 3),
            (Chance::Cloud, 1),
        ]),
        at_a_stroke: LOOKS.map(TaskKind::from).to_vec(),
        goals: vec![Goal::Fenced, Goal::OpenGate, Goal::Unfenced, Goal::RejoinAsks],
        ..of(
            "cloud-rejoin",
            "a host of a cloud is taken back, in order",
            setting,
        )
    }
}
