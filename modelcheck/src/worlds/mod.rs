//! The small worlds, and one that is not so small.

mod big;
mod boots;
mod clocks;
mod dumps;
mod parts;
mod persons;
mod power;
mod records;
mod silence;
mod workloads;

use crate::{Configuration, ModelCheckError};

/// All of them.
#[must_use]
pub fn all() -> Vec<Configuration> {
    small().into_iter().chain([big::big()]).collect()
}

/// Those that are searched before a change is taken.
#[must_use]
pub fn small() -> Vec<Configuration> {
    let subjects = [
        power::all(),
        silence::all(),
        boots::all(),
        persons::all(),
        clocks::all(),
        dumps::all(),
        workloads::all(),
        records::all(),
    ];
    subjects.into_iter().flatten().collect()
}

/// The one of this name.
///
/// # Errors
/// There is none.
pub fn by_name(name: &str) -> Result<Configuration, ModelCheckError> {
    let found = all().into_iter().find(|configuration| configuration.name == name);
    found.ok_or_else(|| ModelCheckError::Configuration(name.to_owned()))
}
