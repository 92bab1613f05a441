//! One that takes minutes: it is searched by command.

use super::parts::{lost, of, off_and_on, setting};
use crate::{Chance, Chances, Configuration, Goal};

pub(super) fn big() -> Configuration {
    Configuration {
        beginning: lost(),
        chances: Chances::of(&[
            (Chance::Fence, 2),
            (Chance::Rejoin, 1),
            (Chance::Heal, 1),
            (Chance::Tell, 1),
            (Chance::Step, 5),
            (Chance::Pause, 1),
            (Chance::Stranger, 1),
        ]),
        goals: vec![
            Goal::Fenced,
            Goal::OpenGate,
            Goal::ProofEnded,
            Goal::RunsFenced,
            Goal::Unfenced,
            Goal::TwoAct,
        ],
        ..of(
            "big",
            "fences that switch the power on again, rejoins, and another party",
            setting(off_and_on()),
        )
    }
}
