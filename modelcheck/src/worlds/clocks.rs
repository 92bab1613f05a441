//! Clocks that differ, and one that is set.

use std::collections::BTreeMap;

use ringfence_core::{FencingKind, SegmentPolicy};
use ringfence_world::Manner;
use ringfence_world::plans::plan;
use ringfence_world::search::{Setting, SimSource};

use super::parts::{fencing, of, off, off_and_on, once, policy, setting, source};
use crate::Chance::*;
use crate::Goal::*;
use crate::{Chances, Configuration};

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
            (Engine, 2),
            (Stranger, 1),
            (Heal, 1),
            (Cut, 1),
            (Tell, 2),
            (Step, 3),
        ]),
        goals: vec![Fenced, OpenGate, ProofEnded, RunsFenced],
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
        chances: Chances::of(&[(Clock, 1), (Heal, 1), (Stranger, 1), (Tell, 1), (Step, 4)]),
        goals: vec![Fenced, OpenGate, ProofEnded, Lingers],
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
        chances: Chances::of(&[(Clock, 1), (Tell, 5), (Step, 5), (Pause, 2)]),
        goals: vec![Fenced, OpenGate, SelfFenced, Settling],
        ..of(
            "clock-alone",
            "a clock that is set while a host fences itself",
            setting,
        )
    }
}
