//! Hosts that say from their crash kernel that the boot before has ended, which suffices.

use ringfence_core::{FencingKind, FrozenPlan, ProofKind};
use ringfence_world::Manner;
use ringfence_world::plans::plan;
use ringfence_world::search::Setting;

use super::parts::{fencing, lost, of, once, setting};
use crate::Chance::*;
use crate::Goal::*;
use crate::{Action, Chances, Configuration};

pub(super) fn all() -> Vec<Configuration> {
    vec![dumps(), late_message(), clock_and_dump()]
}

/// A host that can be fenced by its power, which never answers, or by a message.
fn dumping() -> Setting {
    let power = once(FencingKind::PowerOff, &[&["bmc"]]);
    Setting {
        manners: [("bmc".to_owned(), Manner::Silent)].into(),
        ..setting(FrozenPlan {
            sufficient_sets: vec![[ProofKind::PowerOff].into(), [ProofKind::Kdump].into()],
            ..plan(vec![vec![power]])
        })
    }
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
            (Cut, 1),
            (Tell, 2),
            (Step, 3),
            (Pause, 3),
        ]),
        goals: vec![Fenced, OpenGate, ByKdump, ProofEnded],
        ..of("dumps", "a host whose crash kernel says that it writes a dump", dumping())
    }
}

/// A dump is over and the host runs again when an engine is told of a message.
fn late_message() -> Configuration {
    let dump = [Action::Die, Action::Send, Action::HearMessage(0), Action::StartAgain];
    let back = [Action::Step, Action::Tick, Action::Tell(0)];
    Configuration {
        beginning: [&dump[..], &back[..], &lost()[..]].concat(),
        chances: Chances::of(&[
            (Fence, 2),
            (Cancel, 1),
            (Double, 1),
            (Engine, 1),
            (Die, 1),
            (Send, 1),
            (StartAgain, 1),
            (Heal, 1),
            (Cut, 1),
            (Tell, 1),
            (Step, 3),
            (Pause, 2),
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
    let dump = [Action::Die, Action::Send, Action::HearMessage(0), Action::StartAgain];
    let back = [Action::Step, Action::Tick, Action::Tell(0)];
    Configuration {
        beginning: [&dump[..], &back[..], &lost()[..]].concat(),
        chances: Chances::of(&[
            (Clock, 1),
            (Fence, 1),
            (Die, 1),
            (Send, 1),
            (Tell, 2),
            (Step, 5),
            (Pause, 4),
        ]),
        goals: vec![Fenced, OpenGate, ByKdump],
        ..of(
            "clock-and-dump",
            "a clock that is set between a dump and a fence, or during them",
            dumping(),
        )
    }
}
