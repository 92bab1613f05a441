//! Power that goes and comes.

use std::collections::BTreeMap;

use ringfence_core::{FencingKind, SegmentPolicy};
use ringfence_world::Manner;
use ringfence_world::plans::plan;
use ringfence_world::search::Setting;

use super::parts::{fenced, fencing, lost, of, off, off_and_on, once, policy, setting};
use crate::Chance::*;
use crate::Goal::*;
use crate::{Chances, Configuration};

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
        chances: Chances::of(&[(Fence, 1), (Step, 1)]),
        goals: vec![Fenced, OpenGate],
        ..of("tiny", "one fence by power", setting(off()))
    }
}

fn power() -> Configuration {
    Configuration {
        beginning: lost(),
        chances: Chances::of(&[
            (Fence, 2),
            (Cancel, 1),
            (Heal, 1),
            (Tell, 1),
            (Step, 3),
            (Pause, 1),
            (Stranger, 1),
        ]),
        goals: vec![Fenced, OpenGate, ProofEnded, RunsFenced, TwoAct],
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
            (Fence, 1),
            (Heal, 1),
            (Cut, 1),
            (Tell, 3),
            (Step, 5),
            (Pause, 2),
            (Stranger, 1),
        ]),
        goals: vec![Fenced, OpenGate, ProofEnded, RunsFenced],
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
            (Fence, 1),
            (Rejoin, 1),
            (Cancel, 1),
            (Heal, 1),
            (Tell, 2),
            (Step, 3),
            (Pause, 1),
            (Double, 1),
        ]),
        goals: vec![Fenced, OpenGate, ProofEnded, Unfenced, RejoinAsks],
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
        chances: Chances::of(&[(Rejoin, 1), (Heal, 1), (Tell, 1), (Step, 5), (Pause, 1)]),
        goals: vec![Fenced, OpenGate, ProofEnded, RunsFenced, Unfenced],
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
        chances: Chances::of(&[(Cancel, 1), (Step, 4), (Pause, 1), (Stranger, 1)]),
        goals: vec![Fenced, OpenGate, FenceAsks, TwoAct],
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
        chances: Chances::of(&[(Fence, 1), (Rejoin, 1), (Step, 5), (Pause, 1)]),
        goals: vec![Fenced, OpenGate, ProofEnded, Lingers],
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
            (Fence, 1),
            (Cancel, 1),
            (Heal, 1),
            (Tell, 2),
            (Step, 5),
            (Pause, 1),
            (Stranger, 1),
        ]),
        goals: vec![Fenced, OpenGate, Settling, RunsFenced],
        ..of("settles", "storage that lands what it had accepted", setting)
    }
}
