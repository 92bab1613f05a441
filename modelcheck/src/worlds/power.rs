//! Power that goes and comes.

use std::collections::BTreeMap;

use ringfence_core::{FencingKind, SegmentPolicy};
use ringfence_world::Manner;
use ringfence_world::plans::plan;
use ringfence_world::search::Setting;

use super::parts::{fenced, fencing, lost, of, off, off_and_on, once, policy, setting};
use crate::{Chance, Chances, Configuration, Goal};

pub(super) fn all() -> Vec<Configuration> {
    vec![
        tiny(),
        power(),
        returns(),
        rejoin(),
        reboot(),
        levels(),
        slow(),
        settles(),
    ]
}

fn tiny() -> Configuration {
    Configuration {
        beginning: lost(),
        chances: Chances::of(&[(Chance::Fence, 1), (Chance::Step, 1)]),
        goals: vec![Goal::Fenced, Goal::OpenGate],
        ..of("tiny", "one fence by power", setting(off()))
    }
}

fn power() -> Configuration {
    Configuration {
        beginning: lost(),
        chances: Chances::of(&[
            (Chance::Fence, 2),
            (Chance::Cancel, 1),
            (Chance::Heal, 1),
            (Chance::Tell, 1),
            (Chance::Step, 3),
            (Chance::Pause, 1),
            (Chance::Stranger, 1),
        ]),
        goals: vec![
            Goal::Fenced,
            Goal::OpenGate,
            Goal::ProofEnded,
            Goal::RunsFenced,
            Goal::TwoAct,
        ],
        ..of(
            "power",
            "fences by power, and another party who switches the host on",
            setting(off()),
        )
    }
}

fn returns() -> Configuration {
    Configuration {
        beginning: fenced(),
        chances: Chances::of(&[
            (Chance::Fence, 1),
            (Chance::Heal, 1),
            (Chance::Cut, 1),
            (Chance::Tell, 3),
            (Chance::Step, 5),
            (Chance::Pause, 2),
            (Chance::Stranger, 1),
        ]),
        goals: vec![Goal::Fenced, Goal::OpenGate, Goal::ProofEnded, Goal::RunsFenced],
        ..of(
            "returns",
            "a host that is FENCED comes back and falls silent again",
            setting(off()),
        )
    }
}

fn rejoin() -> Configuration {
    Configuration {
        beginning: fenced(),
        chances: Chances::of(&[
            (Chance::Fence, 1),
            (Chance::Rejoin, 1),
            (Chance::Cancel, 1),
            (Chance::Heal, 1),
            (Chance::Tell, 2),
            (Chance::Step, 3),
            (Chance::Pause, 1),
            (Chance::Double, 1),
        ]),
        goals: vec![
            Goal::Fenced,
            Goal::OpenGate,
            Goal::ProofEnded,
            Goal::Unfenced,
            Goal::RejoinAsks,
        ],
        ..of(
            "rejoin",
            "a host that is FENCED is taken back, and fenced again",
            setting(off()),
        )
    }
}

fn reboot() -> Configuration {
    Configuration {
        beginning: fencing(),
        chances: Chances::of(&[
            (Chance::Rejoin, 1),
            (Chance::Heal, 1),
            (Chance::Tell, 1),
            (Chance::Step, 5),
            (Chance::Pause, 1),
        ]),
        goals: vec![
            Goal::Fenced,
            Goal::OpenGate,
            Goal::ProofEnded,
            Goal::RunsFenced,
            Goal::Unfenced,
        ],
        ..of(
            "reboot",
            "a fence that switches the power on again",
            setting(off_and_on()),
        )
    }
}

fn levels() -> Configuration {
    let off = once(FencingKind::PowerOff, &[&["bmc"], &["pdu-a", "pdu-b"]]);
    let setting = Setting {
        manners: BTreeMap::from([("bmc".to_owned(), Manner::Lies)]),
        ..setting(plan(vec![vec![off]]))
    };
    Configuration {
        beginning: fencing(),
        chances: Chances::of(&[
            (Chance::Cancel, 1),
            (Chance::Step, 4),
            (Chance::Pause, 1),
            (Chance::Stranger, 1),
        ]),
        goals: vec![Goal::Fenced, Goal::OpenGate, Goal::FenceAsks, Goal::TwoAct],
        ..of(
            "levels",
            "a controller that lies, and behind it two supplies of which both have to be off",
            setting,
        )
    }
}

fn slow() -> Configuration {
    let setting = Setting {
        manners: BTreeMap::from([("bmc".to_owned(), Manner::Slow(3_000))]),
        ..setting(off_and_on())
    };
    Configuration {
        beginning: fencing(),
        chances: Chances::of(&[
            (Chance::Fence, 1),
            (Chance::Rejoin, 1),
            (Chance::Step, 5),
            (Chance::Pause, 1),
        ]),
        goals: vec![Goal::Fenced, Goal::OpenGate, Goal::ProofEnded, Goal::Lingers],
        ..of("slow", "a controller that does late what it was told", setting)
    }
}

fn settles() -> Configuration {
    let setting = Setting {
        policy: SegmentPolicy {
            settle_s: 3,
            ..policy()
        },
        lands_ms: 2_000,
        ..setting(off())
    };
    Configuration {
        beginning: lost(),
        chances: Chances::of(&[
            (Chance::Fence, 1),
            (Chance::Cancel, 1),
            (Chance::Heal, 1),
            (Chance::Tell, 2),
            (Chance::Step, 5),
            (Chance::Pause, 1),
            (Chance::Stranger, 1),
        ]),
        goals: vec![Goal::Fenced, Goal::OpenGate, Goal::Settling, Goal::RunsFenced],
        ..of("settles", "storage that lands what it had accepted", setting)
    }
}
