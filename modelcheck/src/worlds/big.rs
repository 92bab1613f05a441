//! One that takes minutes: it is searched by command.

use super::parts::{lost, of, off_and_on, setting};
use crate::Chance::*;
use crate::Goal::*;
use crate::{Chances, Configuration};

pub(super) fn big() -> Configuration {
    Configuration {
        beginning: lost(),
        chances: Chances::of(&[
            (Fence, 2),
            (Rejoin, 1),
            (Heal, 1),
            (Tell, 1),
            (Step, 5),
            (Pause, 1),
            (Stranger, 1),
        ]),
        goals: vec![Fenced, OpenGate, ProofEnded, RunsFenced, Unfenced, TwoAct],
        ..of(
            "big",
            "fences that switch the power on again, rejoins, and another party",
            setting(off_and_on()),
        )
    }
}
