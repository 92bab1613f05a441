//! Names that a shell completes.

use std::ffi::OsStr;

use clap_complete::{ArgValueCompleter, CompletionCandidate};

use crate::client::Contexts;
use crate::config::Environment;

/// Names of contexts.
pub fn contexts() -> ArgValueCompleter {
    ArgValueCompleter::new(|begun: &OsStr| {
        let known = Contexts::read(&Environment::of_this_process()).unwrap_or_default();
        beginning_with(begun, known.contexts.into_keys())
    })
}

/// Those that begin with what was typed so far.
pub fn beginning_with(begun: &OsStr, names: impl Iterator<Item = String>) -> Vec<CompletionCandidate> {
    let begun = begun.to_string_lossy().into_owned();
    let fitting = names.filter(|name| name.starts_with(&begun));
    fitting.map(CompletionCandidate::new).collect()
}
