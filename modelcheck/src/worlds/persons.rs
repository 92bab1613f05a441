//! What people do and say.

use std::collections::BTreeMap;

use ringfence_world::Manner;
use ringfence_world::search::Setting;

use super::parts::{fencing, lost, of, off, setting};
use crate::Chance::*;
use crate::Goal::*;
use crate::{Chances, Configuration};

pub(super) fn all() -> Vec<Configuration> {
    vec![words(), late_words(), liar()]
}

fn words() -> Configuration {
    let setting = Setting {
        manners: BTreeMap::from([("bmc".to_owned(), Manner::Silent)]),
        ..setting(off())
    };
    Configuration {
        beginning: lost(),
        chances: Chances::of(&[
            (Fence, 1),
            (Rejoin, 1),
            (Say, 2),
            (SayLate, 1),
            (PlugIn, 1),
            (Heal, 1),
            (Tell, 1),
            (Step, 3),
        ]),
        goals: vec![Fenced, OpenGate, ByWord, ProofEnded, Unfenced],
        ..of(
            "words",
            "a controller that never answers, and a person who pulls the plugs and says so",
            setting,
        )
    }
}

fn late_words() -> Configuration {
    Configuration {
        beginning: lost(),
        chances: Chances::of(&[
            (Write, 1),
            (PlugIn, 1),
            (Heal, 1),
            (Cut, 1),
            (Tell, 3),
            (Step, 3),
            (Engine, 1),
            (Forget, 1),
        ]),
        goals: vec![Fenced, OpenGate, ByWord, ProofEnded],
        ..of(
            "late-words",
            "a person who pulls the plugs and writes it down, and an engine that reads it later",
            setting(off()),
        )
    }
}

fn liar() -> Configuration {
    Configuration {
        beginning: fencing(),
        chances: Chances::of(&[
            (Fence, 1),
            (Rejoin, 1),
            (Lie, 2),
            (SayLate, 1),
            (Heal, 1),
            (Tell, 2),
            (Step, 2),
        ]),
        goals: vec![Fenced, OpenGate, ByWord, Hearsay, RunsFenced],
        ..of("liar", "a person who says what is not so", setting(off()))
    }
}
