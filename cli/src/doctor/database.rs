//! The database: whether it can be reached, has the schema of this build and the right time, and has an engine that handles its timers.

use chrono::TimeDelta;
use ringfence_core::OperationStatus;
use ringfence_db::{
    Database, DbError, Filters, Page, STATUS, SortKey, Test, due_hosts, operations_page, schema_state,
};

use super::Report;
use crate::clock::now;
use crate::config::Settings;
use crate::error::error_chain;

const PART: &str = "database";
/// Engines take the database's time when they start and correct it slowly; a larger difference is visible in times that people compare.
const MAX_SKEW: TimeDelta = TimeDelta::seconds(2);
/// An engine looks every 0.2 s.
const OVERDUE: TimeDelta = TimeDelta::seconds(30);
/// How many rows are named one by one.
const MOST: u32 = 1000;

/// Returns the database if it can be used.
pub(super) async fn look(settings: &Settings, report: &mut Report) -> Option<Database> {
    let db = open(settings, report).await?;
    match schema_state(&db)
        .await
        .map(|state| state.require_current(db.address()))
    {
        Ok(Ok(())) => report.good(PART, format!("{} has the schema of this build", db.address())),
        Ok(Err(error)) => {
            report.failure(PART, error.to_string(), "install one release on both");
            return None;
        }
        Err(error) => {
            report.failure(PART, error_chain(&error), "start it, or mend database.url");
            return None;
        }
    }
    if let Err(error) = look_inside(&db, report).await {
        report.failure(PART, error_chain(&error), "see the database's own log");
        return None;
    }
    Some(db)
}

async fn open(settings: &Settings, report: &mut Report) -> Option<Database> {
    let url = match (&settings.database.url, &settings.standalone.data_dir) {
        (Some(url), _) => url.expose().to_owned(),
        (None, Some(dir)) if dir.join("ringfence.db").exists() => {
            format!("sqlite://{}", dir.join("ringfence.db").display())
        }
        (None, _) => {
            report.failure(
                PART,
                "database.url is not set, and no standalone service has left a database here",
                "name the services' configuration with --config, or set RINGFENCE_DATABASE_URL",
            );
            return None;
        }
    };
    match Database::open(&url, 2).await {
        Ok(db) => Some(db),
        Err(error) => {
            report.failure(PART, error_chain(&error), "mend database.url");
            None
        }
    }
}

async fn look_inside(db: &Database, report: &mut Report) -> Result<(), DbError> {
    let there = db.now().await?;
    judge_clock(there - now(), report);
    let overdue = due_hosts(&mut db.reader(), there - OVERDUE, MOST).await?;
    if overdue.is_empty() {
        report.good("engine", "nothing is overdue");
    } else {
        report.failure(
            "engine",
            format!(
                "{} hosts have waited for more than {} s for an engine to look at them",
                overdue.len(),
                OVERDUE.num_seconds()
            ),
            "start one: ringfence engine (standalone has its own)",
        );
    }
    waiting(db, report).await
}

fn judge_clock(skew: TimeDelta, report: &mut Report) {
    let ms = skew.num_milliseconds();
    if skew.abs() <= MAX_SKEW {
        report.good(
            "clock",
            format!("this machine and the database differ by {} ms", ms.abs()),
        );
        return;
    }
    let way = if ms > 0 { "ahead of" } else { "behind" };
    report.warning(
        "clock",
        format!("the database is {} ms {way} this machine", ms.abs()),
        "let both follow one set of time servers; engines follow the database",
    );
}

async fn waiting(db: &Database, report: &mut Report) -> Result<(), DbError> {
    let needs_operator = Test::is(OperationStatus::NeedsOperator.as_str().into());
    let filters = Filters::default().and(STATUS, needs_operator);
    let page = Page {
        limit: MOST,
        marker: None,
        sort: vec![SortKey::CreatedAt.ascending()],
    };
    let waiting = operations_page(&mut db.reader(), &filters, &page).await?;
    match waiting.first() {
        None => report.good("operations", "no operation waits for a person"),
        Some(first) => report.warning(
            "operations",
            format!(
                "{} wait for a person, the oldest since {}: {}",
                waiting.len(),
                first.updated_at.format("%FT%TZ"),
                first.detail
            ),
            "ringfence operation list --status needs_operator",
        ),
    }
    Ok(())
}
