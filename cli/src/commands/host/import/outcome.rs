//! The result of each host, and the table of results.

use serde_json::json;

use super::entry::Entry;
use crate::commands::session::Session;
use crate::error::CliError;
use crate::output::{Cell, Table};

/// How many rows are shown. If there are more, only errors are shown.
const SHOWN: usize = 1_000;

/// The result of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The host is new.
    Added,
    /// The host existed and was changed.
    Updated,
    /// The host existed, and its cloud does not have it.
    Removed,
    /// The host exists as the file says.
    Present,
    /// The host exists, and differs from the file.
    Differs,
    /// The service refused the change.
    Failed,
}

impl Fate {
    fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Updated => "updated",
            Self::Removed => "removed",
            Self::Present => "present",
            Self::Differs => "differs",
            Self::Failed => "failed",
        }
    }
}

/// The result of a host.
#[derive(Debug)]
pub struct Outcome {
    /// Its position among all hosts.
    at: usize,
    line: u64,
    name: String,
    fate: Fate,
    detail: String,
}

impl Outcome {
    /// The result of the host at this position.
    pub fn of(at: usize, entry: Entry, fate: Fate, detail: impl Into<String>) -> Self {
        Self {
            at,
            line: entry.line,
            name: entry.name,
            fate,
            detail: detail.into(),
        }
    }

    /// The result, or a failure for the reason `why`.
    pub fn unless(at: usize, entry: Entry, fate: Fate, detail: String, why: Option<String>) -> Self {
        match why {
            None => Self::of(at, entry, fate, detail),
            Some(why) => Self::of(at, entry, Fate::Failed, why),
        }
    }

    /// A host of a cloud has no line.
    fn line(&self) -> Option<u64> {
        Some(self.line).filter(|line| *line > 0)
    }
}

/// How many hosts have this result.
pub fn count(outcomes: &[Outcome], fate: Fate) -> usize {
    outcomes.iter().filter(|outcome| outcome.fate == fate).count()
}

/// Shows the results in the order of the hosts.
pub fn show(session: &mut Session, outcomes: &mut [Outcome], is_dry: bool) -> Result<(), CliError> {
    outcomes.sort_by_key(|outcome| outcome.at);
    if session.screen.is_for_programs() {
        return show_json(session, outcomes, is_dry);
    }
    let is_worth_a_row = |fate: Fate| fate != Fate::Present;
    let rows = outcomes
        .iter()
        .filter(|outcome| is_worth_a_row(outcome.fate))
        .count();
    let is_wrong = |fate: Fate| matches!(fate, Fate::Failed | Fate::Differs);
    let is_shown =
        |outcome: &&Outcome| is_worth_a_row(outcome.fate) && (rows <= SHOWN || is_wrong(outcome.fate));
    let mut table = Table::new(&["LINE", "HOST", "RESULT", "DETAIL"]);
    let mut shown = 0;
    for outcome in outcomes.iter().filter(is_shown).take(SHOWN) {
        shown += 1;
        table.row([
            Cell::maybe(outcome.line().map(|line| line.to_string())),
            outcome.name.as_str().into(),
            Cell::word(outcome.fate.as_str()),
            Cell::maybe(Some(outcome.detail.as_str()).filter(|detail| !detail.is_empty())),
        ]);
    }
    if shown > 0 {
        session.screen.table(table)?;
    }
    if shown < rows {
        let left_out = rows - shown;
        session
            .screen
            .note(format!("{left_out} hosts are not shown; -o json shows all"));
    }
    session.screen.line(summary(outcomes, is_dry))
}

fn show_json(session: &mut Session, outcomes: &[Outcome], is_dry: bool) -> Result<(), CliError> {
    let host = |o: &Outcome| json!({ "name": o.name, "line": o.line(), "result": o.fate.as_str(), "detail": o.detail });
    let hosts: Vec<_> = outcomes.iter().map(host).collect();
    session.screen.data(&json!({
        "hosts": hosts, "dry_run": is_dry, "added": count(outcomes, Fate::Added), "updated": count(outcomes, Fate::Updated),
        "present": count(outcomes, Fate::Present), "differs": count(outcomes, Fate::Differs),
        "failed": count(outcomes, Fate::Failed), "removed": count(outcomes, Fate::Removed),
    }))
}

fn summary(outcomes: &[Outcome], is_dry: bool) -> String {
    let would = if is_dry { "would be " } else { "" };
    let mut line = format!(
        "{would}added: {}, {would}updated: {}, present: {}",
        count(outcomes, Fate::Added),
        count(outcomes, Fate::Updated),
        count(outcomes, Fate::Present)
    );
    let removed = count(outcomes, Fate::Removed);
    if removed > 0 {
        line.push_str(&format!(", {would}removed: {removed}"));
    }
    let (differs, failed) = (count(outcomes, Fate::Differs), count(outcomes, Fate::Failed));
    if differs > 0 {
        line.push_str(&format!(
            ", different and left as they are: {differs} (--update changes them)"
        ));
    }
    if failed > 0 {
        line.push_str(&format!(", failed: {failed}"));
    }
    line
}
