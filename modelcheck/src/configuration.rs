//! One small world.

use ringfence_core::TaskKind;
use ringfence_world::search::Setting;

use crate::{Action, Chances, Goal};

/// A setting, how its histories begin, and what may happen in them.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// What holds before.
    pub setting: Setting,
    /// What has happened already; it takes no chances.
    pub beginning: Vec<Action>,
    /// What may happen.
    pub chances: Chances,
    /// Tasks whose workers are not stopped on their way.
    pub at_a_stroke: Vec<TaskKind>,
    /// How long a pause is, in milliseconds.
    pub pause_ms: i64,
    /// What has to be reached; without it the search would mean nothing.
    pub goals: Vec<Goal>,
}
