//! Silence, and who hears what.

use std::collections::BTreeMap;

use ringfence_core::{FencingKind, FencingPolicy, SegmentPolicy};
use ringfence_world::Manner;
use ringfence_world::plans::plan;
use ringfence_world::search::{Setting, SimSource};

use super::parts::{fencing, lost, of, off, once, policy, setting, source};
use crate::{Action, Chance, Chances, Configuration, Goal};

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
        chances: Chances::of(&[
            (Chance::Heal, 1),
            (Chance::Cut, 1),
            (Chance::Tell, 4),
            (Chance::Step, 4),
            (Chance::Pause, 3),
            (Chance::Unseen, 1),
        ]),
        goals: vec![Goal::Fenced, Goal::OpenGate, Goal::SelfFenced, Goal::FenceAsks],
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
        chances: Chances::of(&[
            (Chance::Heal, 1),
            (Chance::Cut, 1),
            (Chance::Tell, 3),
            (Chance::Step, 5),
            (Chance::Pause, 1),
            (Chance::Rejoin, 1),
        ]),
        goals: vec![
            Goal::Fenced,
            Goal::OpenGate,
            Goal::SelfFenced,
            Goal::ProofEnded,
            Goal::Unfenced,
        ],
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
        chances: Chances::of(&[
            (Chance::Heal, 1),
            (Chance::Cut, 1),
            (Chance::Tell, 4),
            (Chance::Step, 4),
            (Chance::Pause, 3),
        ]),
        goals: vec![Goal::FenceAsks],
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
        chances: Chances::of(&[
            (Chance::Heal, 1),
            (Chance::Cut, 1),
            (Chance::Tell, 4),
            (Chance::Step, 4),
            (Chance::Pause, 2),
        ]),
        goals: vec![Goal::Fenced, Goal::OpenGate, Goal::SelfFenced],
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
        chances: Chances::of(&[
            (Chance::Heal, 1),
            (Chance::Post, 2),
            (Chance::Step, 3),
            (Chance::Stranger, 1),
        ]),
        goals: vec![Goal::Fenced, Goal::OpenGate, Goal::ProofEnded, Goal::RunsFenced],
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
            (Chance::Heal, 1),
            (Chance::Cut, 1),
            (Chance::Tell, 2),
            (Chance::Step, 5),
            (Chance::Cancel, 1),
            (Chance::Stranger, 1),
        ]),
        goals: vec![
            Goal::Fenced,
            Goal::OpenGate,
            Goal::ProofEnded,
            Goal::Unfenced,
            Goal::FenceAsks,
        ],
        ..of(
            "automatic",
            "fences and rejoins that begin by themselves",
            setting,
        )
    }
}
