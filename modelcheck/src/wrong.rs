//! What must never be.

use std::fmt;

use ringfence_world::Violation;

/// What must never be, and was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// What the physical world judges.
    Violation(Violation),
    /// A worker may act while another one that pulls the other way has not stopped.
    Opposites,
    /// A generation was taken back, or FENCED ended without a rejoin.
    Forgotten(&'static str),
    /// Time alone does not end what is under way.
    Endless(String),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violation(violation) => write!(f, "{violation:?}"),
            Self::Opposites => write!(f, "Opposites"),
            Self::Forgotten(what) => write!(f, "Forgotten: {what}"),
            Self::Endless(why) => write!(f, "Endless: {why}"),
        }
    }
}
