//! Clocks that differ, and one that is set.

use std::collections::BTreeMap;

use ringfence_core::{FencingKind, SegmentPolicy};
use ringfence_world::Manner;
use ringfence_world::plans::plan;
use ringfence_world::search::{Setting, SimSource};

use super::parts::{fencing, of, off, off_and_on, once, policy, setting, source};
use crate::{Chance, Chances, Configuration, Goal};

pub(super) fn all() -> Vec<Configuration> {
    vec![engines(), clock_set(), clock_and_watchdog()]
}

/// A host that starts so fast that clocks cannot tell what came first.
fn engines() -> Configuration {
    let setting = Setting {
        boot_ms: 400,
        sources: vec![SimSource {
            skew_ms: -1_500,
            ..source("monitor")
        }],
        ..setting(off())
    };
    Configuration {
        beginning: fencing(),
        chances: Chances::of(&[
            (Chance::Engine, 2),
            (Chance::Stranger, 1),
            (Chance::Heal, 1),
            (Chance::Cut, 1),
            (Chance::Tell, 2),
            (Chance::Step, 3),
        ]),
        goals: vec![Goal::Fenced, Goal::OpenGate, Goal::ProofEnded, Goal::RunsFenced],
        ..of(
            "engines",
            "two engines whose clocks differ, and a source whose clock is behind",
            setting,
        )
    }
}

fn clock_set() -> Configuration {
    Configuration {
        beginning: fencing(),
        chances: Chances::of(&[
            (Chance::Clock, 1),
            (Chance::Heal, 1),
            (Chance::Tell, 1),
            (Chance::Step, 4),
        ]),
        goals: vec![Goal::Fenced, Goal::OpenGate, Goal::ProofEnded, Goal::Lingers],
        ..of(
            "clock-set",
            "a clock that is set, forwards or backwards",
            setting(off_and_on()),
        )
    }
}

fn clock_and_watchdog() -> Configuration {
    let setting = Setting {
        policy: SegmentPolicy {
            self_fencing_timeout_s: Some(8),
            settle_s: 3,
            ..policy()
        },
        lands_ms: 2_000,
        manners: BTreeMap::from([("bmc".to_owned(), Manner::Silent)]),
        ..setting(plan(vec![vec![once(FencingKind::PowerOff, &[&["bmc"]])]]))
    };
    Configuration {
        beginning: fencing(),
        chances: Chances::of(&[
            (Chance::Clock, 1),
            (Chance::Tell, 5),
            (Chance::Step, 5),
            (Chance::Pause, 2),
        ]),
        goals: vec![Goal::Fenced, Goal::OpenGate, Goal::SelfFenced, Goal::Settling],
        ..of(
            "clock-alone",
            "a clock that is set while a host fences itself",
            setting,
        )
    }
}
