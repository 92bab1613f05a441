//! Hosts that say from their crash kernel that the boot before has ended, which suffices.

use ringfence_core::{FrozenPlan, ProofKind};
use ringfence_world::plans::plan;
use ringfence_world::search::Setting;

use super::parts::{fencing, lost, of, setting};
use crate::Chance::*;
use crate::Goal::*;
use crate::{Action, Chances, Configuration};

pub(super) fn all() -> Vec<Configuration> {
    vec![dumps(), late_message(), clock_and_dump()]
}

/// A host that is fenced by a message of its crash kernel, and by nothing else.
fn dumping() -> Setting {
    setting(FrozenPlan {
        sufficient_sets: vec![[ProofKind::Kdump].into()],
        ..plan(Vec::new())
    })
}

/// It has written a dump, runs again, and no engine was told of its message.
fn after_a_dump() -> Vec<Action> {
    use Action::{Die, HearMessage, Send, StartAgain, Step, Tell, Tick};
    // Its source gives it up first, before it has started.
    vec![Die, Send, HearMessage(0), StartAgain, Step, Step, Tick, Tell(0)]
}

/// The host falls silent and is to be fenced; its kernel dies before or after that, or never.
fn dumps() -> Configuration {
    Configuration {
        beginning: fencing(),
        chances: Chances::of(&[
            (Die, 1),
            (Send, 2),
            (StartAgain, 1),
            (Heal, 1),
            (Tell, 1),
            (Step, 3),
            (Pause, 3),
        ]),
        goals: vec![Fenced, OpenGate, ByKdump, ProofEnded],
        ..of(
            "dumps",
            "a host whose crash kernel says that it writes a dump",
            dumping(),
        )
    }
}

/// A dump is over and the host runs again when an engine is told of a message.
fn late_message() -> Configuration {
    Configuration {
        beginning: [after_a_dump(), lost()].concat(),
        chances: Chances::of(&[
            (Fence, 1),
            (Engine, 1),
            (Die, 1),
            (Send, 1),
            (StartAgain, 1),
            (Step, 2),
            (Pause, 4),
        ]),
        goals: vec![Fenced, OpenGate, ByKdump],
        ..of(
            "late-message",
            "an engine is told of an earlier dump when the host runs again",
            dumping(),
        )
    }
}

fn clock_and_dump() -> Configuration {
    Configuration {
        beginning: [after_a_dump(), lost()].concat(),
        chances: Chances::of(&[
            (Clock, 1),
            (Fence, 1),
            (Die, 1),
            (Send, 1),
            (Tell, 1),
            (Step, 4),
            (Pause, 3),
        ]),
        goals: vec![Fenced, OpenGate, ByKdump],
        ..of(
            "clock-and-dump",
            "a clock that is set between a dump and a fence, or during them",
            dumping(),
        )
    }
}
