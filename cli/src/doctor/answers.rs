//! The devices' last answers to the engines' health checks.

use chrono::TimeDelta;
use ringfence_core::MethodId;
use ringfence_db::{CheckSummary, Database, DbError, MethodCheckRow, check_summaries, method_checks_page};

use super::hosts::Site;
use super::verdict::Silences;
use super::{Report, Which};
use crate::config::Settings;
use crate::error::error_chain;

const PART: &str = "devices";
/// How many hosts are named for one method.
const NAMED: usize = 5;
/// How many rows are read at a time, and at most for one method: as many hosts as are looked at one by one.
const PAGE: u32 = 1000;
const MOST: usize = 100_000;
/// An answer older than so many intervals shows that no engine asks any more.
const STALE_AFTER: i32 = 8;
/// The remedy that gives an answer at once.
const ASK_NOW: &str = "ask them now: ringfence doctor --devices";

/// Reports the devices that do not tell their state.
pub(super) async fn look(
    settings: &Settings,
    db: &Database,
    site: &Site,
    which: Option<&Which>,
    report: &mut Report,
) -> Silences {
    let mut silences = Silences::default();
    if site.methods.is_empty() {
        return silences;
    }
    let every = TimeDelta::seconds(i64::try_from(settings.checks.interval_s).unwrap_or(i64::MAX / 1000));
    if every.is_zero() {
        let found = "checks.interval_s is 0: whether they answer shows only when they are needed";
        report.warning(PART, found, ASK_NOW);
        return silences;
    }
    // The last answers do not matter where all devices are asked again.
    if which.is_some_and(Which::is_all) {
        return silences;
    }
    if let Err(error) = judge(db, site, every, &mut silences, report).await {
        report.failure(PART, error_chain(&error), "see the database's own log");
    }
    silences
}

/// All failed answers for a method.
async fn failing(db: &Database, method: MethodId) -> Result<Vec<MethodCheckRow>, DbError> {
    let mut all: Vec<MethodCheckRow> = Vec::new();
    loop {
        let after = all.last().map(|row| row.id);
        let rows = method_checks_page(&mut db.reader(), method, Some(true), after, PAGE).await?;
        let is_last = rows.len() < PAGE as usize;
        all.extend(rows);
        if is_last || all.len() >= MOST {
            return Ok(all);
        }
    }
}

async fn judge(
    db: &Database,
    site: &Site,
    every: TimeDelta,
    silences: &mut Silences,
    report: &mut Report,
) -> Result<(), DbError> {
    let mut reader = db.reader();
    let now = db.now().await?;
    let summaries = check_summaries(&mut reader, None).await?;
    for (name, method) in &site.methods {
        let of_method = |summary: &&CheckSummary| summary.method_id == method.id;
        let Some(summary) = summaries.iter().find(of_method) else {
            continue;
        };
        let failing = failing(db, method.id).await?;
        for row in &failing {
            silences.note(name, row.host.as_ref().map(|(_, host)| host.as_str()));
        }
        judge_method(name, summary, &failing, site.uses(name), report);
        let stale = summary.oldest_at.filter(|at| now - *at > every * STALE_AFTER);
        if let Some(at) = stale {
            report.warning(
                PART,
                format!(
                    "{name}: an answer is from {} and no newer one has come",
                    at.format("%FT%TZ")
                ),
                "check whether an engine runs, and whether the host waits for an operator",
            );
        }
    }
    if summaries.iter().all(|summary| summary.answered == 0) {
        report.warning(PART, "no device has been asked for its state yet", ASK_NOW);
    }
    Ok(())
}

fn judge_method(
    name: &str,
    summary: &CheckSummary,
    failing: &[MethodCheckRow],
    is_used: bool,
    report: &mut Report,
) {
    if summary.failing == 0 {
        if summary.answered > 0 {
            let (answered, targets) = (summary.answered, summary.targets);
            report.good(
                PART,
                format!("{name}: {answered} of {targets} have told their state"),
            );
        }
        return;
    }
    for row in failing.iter().take(NAMED) {
        let host = row.host.as_ref().map(|(_, host)| format!(" for {host}"));
        let host = host.unwrap_or_default();
        let (outcome, detail) = row.last.as_ref().map_or(("unknown", ""), |(_, answer)| {
            (
                answer.outcome.as_str(),
                answer.detail.as_deref().unwrap_or_default(),
            )
        });
        let since = row
            .failing_since
            .map(|at| format!(" since {}", at.format("%FT%TZ")))
            .unwrap_or_default();
        let found = format!("{name}{host}: {outcome}{since}: {detail}");
        if is_used {
            let todo = "check the device, its address and its credentials; then: ringfence method check";
            report.warning(PART, found, todo);
        } else {
            report.warning(
                PART,
                found,
                "no plan uses it; mend it, or: ringfence method delete",
            );
        }
    }
    let more = summary.failing.saturating_sub(NAMED as u64);
    if more > 0 {
        report.warning(
            PART,
            format!("{name}: {more} more do not tell their state"),
            format!("ringfence method checks {name} --failing"),
        );
    }
}
