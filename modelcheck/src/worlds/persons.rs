//! What people do and say.

use std::collections::BTreeMap;

use ringfence_world::Manner;
use ringfence_world::search::Setting;

use super::parts::{fencing, lost, of, off, setting};
use crate::{Chance, Chances, Configuration, Goal};

pub(super) fn all() -> Vec<Configuration> {
    vec![words(), liar()]
}

fn words() -> Configuration {
    let setting = Setting {
        manners: BTreeMap::from([("bmc".to_owned(), Manner::Silent)]),
        ..setting(off())
    };
    Configuration {
        beginning: lost(),
        chances: Chances::of(&[
            (Chance::Fence, 1),
            (Chance::Rejoin, 1),
            (Chance::Say, 2),
            (Chance::SayLate, 1),
            (Chance::PlugIn, 1),
            (Chance::Heal, 1),
            (Chance::Tell, 1),
            (Chance::Step, 3),
        ]),
        goals: vec![
            Goal::Fenced,
            Goal::OpenGate,
            Goal::ByWord,
            Goal::ProofEnded,
            Goal::Unfenced,
        ],
        ..of(
            "words",
            "a controller that never answers, and a person who pulls the plugs and says so",
            setting,
        )
    }
}

fn liar() -> Configuration {
    Configuration {
        beginning: fencing(),
        chances: Chances::of(&[
            (Chance::Fence, 1),
            (Chance::Rejoin, 1),
            (Chance::Lie, 2),
            (Chance::SayLate, 1),
            (Chance::Heal, 1),
            (Chance::Tell, 2),
            (Chance::Step, 2),
        ]),
        goals: vec![
            Goal::Fenced,
            Goal::OpenGate,
            Goal::ByWord,
            Goal::Hearsay,
            Goal::RunsFenced,
        ],
        ..of("liar", "a person who says what is not so", setting(off()))
    }
}
