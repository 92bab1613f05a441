//! A database that is a cache of records, and vanishes: what is left is the record of the host.

use ringfence_core::{FencingKind, SegmentPolicy};
use ringfence_world::search::{Setting, SimSource};

use super::parts::{cut_off, fencing, lost, of, off_and_on, policy, setting, source};
use crate::Chance::*;
use crate::Goal::*;
use crate::{Chances, Configuration};

pub(super) fn all() -> Vec<Configuration> {
    vec![power(), cut(), silence()]
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
