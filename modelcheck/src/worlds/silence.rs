//! Silence, and who hears what.

use std::collections::BTreeMap;

use ringfence_core::{FencingKind, FencingPolicy, SegmentPolicy};
use ringfence_world::Manner;
use ringfence_world::plans::plan;
use ringfence_world::search::{Setting, SimSource};

use super::parts::{fencing, lost, of, off, once, policy, setting, source};
use crate::Chance::*;
use crate::Goal::*;
use crate::{Action, Chances, Configuration};

pub(super) fn all() -> Vec<Configuration> {
    vec![watchdog(), resets(), undated(), witnesses(), late(), automatic()]
}

/// A host that fences itself, whose controller never answers.
fn alone() -> Setting {
    Setting {
        policy: SegmentPolicy {
            self_fencing_timeout_s: Some(8),
            ..policy()
        },
        manners: BTreeMap::from([("bmc".to_owned(), Manner::Silent)]),
        ..setting(plan(vec![vec![once(FencingKind::PowerOff, &[&["bmc"]])]]))
    }
}

fn watchdog() -> Configuration {
    Configuration {
        beginning: fencing(),
        chances: Chances::of(&[(Heal, 1), (Cut, 1), (Tell, 4), (Step, 4), (Pause, 3), (Unseen, 1)]),
        goals: vec![Fenced, OpenGate, SelfFenced, FenceAsks],
        ..of("watchdog", "a host that fences itself", alone())
    }
}

fn resets() -> Configuration {
    let setting = Setting {
        watchdog_resets: true,
        ..alone()
    };
    Configuration {
        beginning: fencing(),
        chances: Chances::of(&[(Heal, 1), (Cut, 1), (Tell, 3), (Step, 5), (Pause, 1), (Rejoin, 1)]),
        goals: vec![Fenced, OpenGate, SelfFenced, ProofEnded, Unfenced],
        ..of(
            "resets",
            "a host whose watchdog resets it, so that it boots again",
            setting,
        )
    }
}

fn undated() -> Configuration {
    let monitor = SimSource {
        says_last_seen: false,
        ..source("monitor")
    };
    Configuration {
        beginning: fencing(),
        chances: Chances::of(&[(Heal, 1), (Cut, 1), (Tell, 4), (Step, 4), (Pause, 3)]),
        goals: vec![FenceAsks],
        ..of(
            "undated",
            "a host that fences itself, and a source that does not say when it last heard it",
            Setting {
                sources: vec![monitor],
                ..alone()
            },
        )
    }
}

fn witnesses() -> Configuration {
    let setting = Setting {
        sources: vec![source("monitor"), source("platform")],
        ..alone()
    };
    Configuration {
        beginning: vec![
            Action::Cut(0),
            Action::Cut(1),
            Action::Step,
            Action::Tell(0),
            Action::Tell(1),
            Action::Fence,
        ],
        chances: Chances::of(&[(Heal, 1), (Cut, 1), (Tell, 4), (Step, 4), (Pause, 2)]),
        goals: vec![Fenced, OpenGate, SelfFenced],
        ..of("witnesses", "a host that fences itself, and two sources", setting)
    }
}

fn late() -> Configuration {
    let behind = SimSource {
        skew_ms: -1_500,
        ..source("platform")
    };
    let setting = Setting {
        sources: vec![source("monitor"), behind],
        ..setting(off())
    };
    Configuration {
        beginning: vec![
            Action::Cut(0),
            Action::Cut(1),
            Action::Step,
            Action::Tell(0),
            Action::Tell(1),
            Action::Fence,
        ],
        chances: Chances::of(&[(Heal, 1), (Post, 2), (Step, 3), (Stranger, 1)]),
        goals: vec![Fenced, OpenGate, ProofEnded, RunsFenced],
        ..of(
            "late",
            "two sources whose reports come late and in any order, one of them with a clock that is behind",
            setting,
        )
    }
}

fn automatic() -> Configuration {
    let setting = Setting {
        policy: SegmentPolicy {
            auto_rejoin: true,
            restarts: 1,
            restart_delay_s: 3,
            fencing: FencingPolicy {
                automatic: true,
                after_s: 3,
                ..FencingPolicy::default()
            },
            ..policy()
        },
        ..setting(off())
    };
    Configuration {
        beginning: lost(),
        chances: Chances::of(&[
            (Heal, 1),
            (Cut, 1),
            (Tell, 2),
            (Step, 5),
            (Cancel, 1),
            (Stranger, 1),
        ]),
        goals: vec![Fenced, OpenGate, ProofEnded, Unfenced, FenceAsks],
        ..of(
            "automatic",
            "fences and rejoins that begin by themselves",
            setting,
        )
    }
}
