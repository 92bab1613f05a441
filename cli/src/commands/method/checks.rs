//! The last answers of the devices of methods.

use serde::Deserialize;

use super::super::session::Session;
use crate::client::view::{Checks, MethodCheck};
use crate::error::CliError;
use crate::output::{Cell, Table, time};

/// `ringfence method checks`
pub async fn list(method: &str, is_failing: bool, limit: u32, session: &mut Session) -> Result<(), CliError> {
    let query = [("failing", is_failing.then(|| "true".to_owned()))];
    let path = ["methods", method, "checks"];
    let all = session.client.collect_at(&path, &query, limit as usize).await?;
    if session.screen.is_for_programs() {
        return session.screen.data(&all);
    }
    let checks = Vec::<MethodCheck>::deserialize(&all["checks"]).map_err(|error| CliError::Answer {
        url: path.join("/"),
        why: error.to_string(),
    })?;
    session.screen.table(table(&checks))
}

fn table(checks: &[MethodCheck]) -> Table {
    let mut table = Table::new(&[
        "HOST",
        "LAST CHECK",
        "STATE",
        "AGE",
        "FAILING SINCE",
        "TOOK",
        "WORKER",
        "DETAIL",
    ]);
    for check in checks {
        table.row([
            check.host.as_deref().unwrap_or("(all)").into(),
            Cell::word(check.outcome.as_deref().unwrap_or("-")),
            Cell::maybe(check.state.as_deref()),
            age(check.age_s),
            Cell::maybe(check.failing_since.map(time).as_deref()),
            Cell::maybe(check.took_ms.map(|ms| format!("{ms} ms")).as_deref()),
            Cell::maybe(check.worker.as_deref()),
            Cell::maybe(check.detail.as_deref()),
        ]);
    }
    table
}

/// The worst of a method's last answers.
pub fn outcome(checks: Option<&Checks>) -> Cell {
    let Some(checks) = checks else {
        return Cell::word("-");
    };
    let Some(outcome) = checks.outcome.as_deref() else {
        return Cell::word("pending");
    };
    if checks.targets > 1 && checks.failing > 0 {
        return Cell::word(outcome).with(format!(" ({} of {})", checks.failing, checks.targets));
    }
    Cell::word(outcome)
}

/// The age of an answer.
pub fn age(seconds: Option<u64>) -> Cell {
    Cell::maybe(seconds.map(span).as_deref())
}

/// A summary in one line.
pub fn in_words(checks: &Checks) -> String {
    let Some(outcome) = checks.outcome.as_deref() else {
        return format!("none of {} yet", checks.targets);
    };
    let since = checks
        .failing_since
        .map(|at| format!(" since {}", time(at)))
        .unwrap_or_default();
    let age = checks
        .age_s
        .map(|age| format!(", at most {} old", span(age)))
        .unwrap_or_default();
    format!(
        "{outcome}: {} of {} failing{since}; {} answered{age}",
        checks.failing, checks.targets, checks.answered
    )
}

fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}
