//! What each method's device last answered when it was asked for its state.

use ringfence_core::{CheckAnswer, CheckOutcome, HostId, LastCheck, MethodId, Timestamp};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::columns::table;
use crate::row::Row;
use crate::run::{Run, execute, fetch_all, fetch_optional, write};
use crate::table_rows::TableRows;
use crate::value::args;
use crate::{Database, DbError};

/// A question that is put again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckTarget {
    /// Its row.
    pub id: Uuid,
    /// The method.
    pub method_id: MethodId,
    /// The host; none where one question is for all hosts.
    pub host_id: Option<HostId>,
    /// What is asked, in short: another question gets another row.
    pub question: Uuid,
    /// The device, where it takes one command at a time.
    pub device: Option<String>,
    /// When it is put next.
    pub next_at: Timestamp,
    /// Answers in a row that no worker gave.
    pub missed: u32,
}

/// The last answer for a method, for one host or for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodCheckRow {
    /// Its row.
    pub id: Uuid,
    /// The host's id and name; none where one question is for all hosts.
    pub host: Option<(HostId, String)>,
    /// The answer and when it came; none before the first.
    pub last: Option<(Timestamp, CheckAnswer)>,
    /// Since when no answer was good.
    pub failing_since: Option<Timestamp>,
    /// When it is asked next.
    pub next_at: Timestamp,
}

/// All last answers for one method, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckSummary {
    /// The method.
    pub method_id: MethodId,
    /// Questions that are put for it: one per host, or one for all.
    pub targets: u64,
    /// How many have an answer.
    pub answered: u64,
    /// How many were not answered well.
    pub failing: u64,
    /// The worst answer.
    pub worst: Option<CheckOutcome>,
    /// When the latest answer came.
    pub last_at: Option<Timestamp>,
    /// When the oldest of them came.
    pub oldest_at: Option<Timestamp>,
    /// Since when one of them has failed.
    pub failing_since: Option<Timestamp>,
}

/// Questions that one statement adds or removes.
const AT_ONCE: usize = 64;

table! {
    "method_checks":
    id, method_id, host_id, question, device, next_at, missed, checked_at, outcome, state, detail, worker,
    took_ms, failing_since,
}

fn read_target(row: &Row) -> Result<CheckTarget, DbError> {
    Ok(CheckTarget {
        id: row.id(column::id)?,
        method_id: MethodId(row.id(column::method_id)?),
        host_id: row.opt_id(column::host_id)?.map(HostId),
        question: row.id(column::question)?,
        device: row.opt_text(column::device)?,
        next_at: row.time(column::next_at)?,
        missed: u32::try_from(row.count(column::missed)?).unwrap_or(u32::MAX),
    })
}

fn read(row: &Row) -> Result<MethodCheckRow, DbError> {
    let host = match row.opt_id(column::host_id)? {
        Some(id) => Some((HostId(id), row.text("host")?)),
        None => None,
    };
    Ok(MethodCheckRow {
        id: row.id(column::id)?,
        host,
        last: read_last(row)?.map(|last| (last.at, last.answer)),
        failing_since: row.opt_time(column::failing_since)?,
        next_at: row.time(column::next_at)?,
    })
}

fn read_last(row: &Row) -> Result<Option<LastCheck>, DbError> {
    let Some(at) = row.opt_time(column::checked_at)? else {
        return Ok(None);
    };
    Ok(Some(LastCheck {
        at,
        answer: read_answer(row)?,
        failing_since: row.opt_time(column::failing_since)?,
    }))
}

fn read_answer(row: &Row) -> Result<CheckAnswer, DbError> {
    Ok(CheckAnswer {
        outcome: row.word(column::outcome, CheckOutcome::from_word)?,
        state: row.opt_text(column::state)?,
        detail: row.opt_text(column::detail)?,
        worker: row.opt_text(column::worker)?,
        took_ms: row.opt_count(column::took_ms)?,
    })
}

/// The questions after `after`, by id, at most `limit`.
pub async fn check_targets(
    run: &mut impl Run,
    after: Option<Uuid>,
    limit: u32,
) -> Result<Vec<CheckTarget>, DbError> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        " FROM method_checks WHERE (CAST($1 AS text) IS NULL OR id > $1) ORDER BY id LIMIT $2"
    );
    let rows = fetch_all(run, sql, args![after, limit]).await?;
    rows.iter().map(read_target).collect()
}

/// Adds questions. Hosts are not kept from being fenced meanwhile.
pub async fn add_check_targets(db: &Database, targets: &[CheckTarget]) -> Result<(), DbError> {
    for targets in targets.chunks(AT_ONCE) {
        let rows = targets.iter().map(|target| {
            args![
                target.id,
                target.method_id.0,
                target.host_id.map(|id| id.0),
                target.question,
                target.device.clone(),
                target.next_at,
                target.missed
            ]
        });
        let columns = "id, method_id, host_id, question, device, next_at, missed";
        let rows = TableRows::insert(
            "method_checks",
            columns,
            rows.collect(),
            " ON CONFLICT DO NOTHING",
        );
        write(&mut db.reader(), rows).await?;
    }
    Ok(())
}

/// Removes questions that are not put any more.
pub async fn remove_check_targets(db: &Database, ids: &[Uuid]) -> Result<(), DbError> {
    for ids in ids.chunks(AT_ONCE) {
        let mut reader = db.reader();
        let sql = format!(
            "DELETE FROM method_checks WHERE {}",
            reader.dialect().in_first_argument("id")
        );
        execute(&mut reader, AssertSqlSafe(sql), args![ids.to_vec()]).await?;
    }
    Ok(())
}

/// What keeps a question from being put: an operation that lives on its host, an attempt that has its device.
const UNDISTURBED: &str =
    "NOT EXISTS (SELECT 1 FROM operations WHERE operations.host_id = method_checks.host_id
                 AND operations.finished_at IS NULL)
         AND NOT EXISTS (SELECT 1 FROM device_leases
                 WHERE device_leases.device = method_checks.device AND device_leases.until > $1)";

/// Takes questions whose time has come and whose device is free, and keeps others from putting them until `until`.
pub async fn take_checks(
    db: &Database,
    now: Timestamp,
    until: Timestamp,
    limit: u32,
) -> Result<Vec<CheckTarget>, DbError> {
    let due = format!("SELECT 1 AS due FROM method_checks WHERE next_at <= $1 AND {UNDISTURBED} LIMIT 1");
    if fetch_optional(&mut db.reader(), AssertSqlSafe(due), args![now])
        .await?
        .is_none()
    {
        return Ok(Vec::new());
    }
    let mut tx = db.begin().await?;
    let (skip, columns) = (tx.dialect().for_update_skip_locked(), columns!());
    let sql = format!(
        "WITH due AS MATERIALIZED
             (SELECT id FROM method_checks WHERE next_at <= $1 AND {UNDISTURBED} ORDER BY next_at LIMIT $3{skip})
         UPDATE method_checks SET next_at = $2 WHERE id IN (SELECT id FROM due)
         RETURNING {columns}"
    );
    let rows = fetch_all(&mut tx, AssertSqlSafe(sql), args![now, until, limit]).await?;
    let targets = rows
        .iter()
        .map(read_target)
        .collect::<Result<Vec<_>, DbError>>()?;
    tx.commit().await?;
    Ok(targets)
}

/// Puts an answer on record; `false` if the question is not put any more.
pub async fn save_check(
    run: &mut impl Run,
    target: &CheckTarget,
    answer: &CheckAnswer,
    now: Timestamp,
) -> Result<bool, DbError> {
    let sql = "UPDATE method_checks SET checked_at = $2, outcome = $3, state = $4, detail = $5, worker = $6, took_ms = $7,
                   failing_since = CASE WHEN $3 = 'confirmed' THEN NULL ELSE coalesce(failing_since, $2) END,
                   missed = $8, next_at = $9
               WHERE id = $1";
    let values = args![
        target.id,
        now,
        answer.outcome.as_str(),
        answer.state.clone(),
        answer.detail.clone(),
        answer.worker.clone(),
        answer.took_ms,
        target.missed,
        target.next_at
    ];
    Ok(execute(run, sql, values).await? == 1)
}

/// Puts a question again at another time; the last answer stays.
pub async fn postpone_check(run: &mut impl Run, id: Uuid, next_at: Timestamp) -> Result<(), DbError> {
    let sql = "UPDATE method_checks SET next_at = $2 WHERE id = $1";
    execute(run, sql, args![id, next_at]).await.map(|_| ())
}

/// The last answers for one method by the host's name, after the row `marker`.
pub async fn method_checks_page(
    run: &mut impl Run,
    method_id: MethodId,
    is_failing: Option<bool>,
    marker: Option<Uuid>,
    limit: u32,
) -> Result<Vec<MethodCheckRow>, DbError> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        ", hosts.name AS host FROM method_checks
         LEFT JOIN hosts ON hosts.id = method_checks.host_id
         WHERE method_checks.method_id = $1
           AND (CAST($2 AS text) IS NULL
                OR (CAST($2 AS text) = 'yes') = (method_checks.failing_since IS NOT NULL))
           AND (CAST($3 AS text) IS NULL
                OR coalesce(hosts.name, '') > coalesce(
                    (SELECT h.name FROM method_checks m LEFT JOIN hosts h ON h.id = m.host_id WHERE m.id = $3), ''))
         ORDER BY coalesce(hosts.name, '') LIMIT $4"
    );
    let is_failing = is_failing.map(|is_failing| if is_failing { "yes" } else { "no" });
    let rows = fetch_all(run, sql, args![method_id.0, is_failing, marker, limit]).await?;
    rows.iter().map(read).collect()
}

/// The last answer for each of these methods that was asked for about the host, or without a host. A method without an answer is left out.
pub async fn last_checks_of_host(
    run: &mut impl Run,
    methods: &[MethodId],
    host_id: HostId,
) -> Result<Vec<(MethodId, LastCheck)>, DbError> {
    let sql = format!(
        "SELECT {} FROM method_checks WHERE {} AND (host_id = $2 OR host_id IS NULL) AND checked_at IS NOT NULL",
        columns!(),
        run.dialect().in_first_argument("method_id")
    );
    let ids: Vec<Uuid> = methods.iter().map(|id| id.0).collect();
    let rows = fetch_all(run, AssertSqlSafe(sql), args![ids, host_id.0]).await?;
    let mut last = Vec::with_capacity(rows.len());
    for row in &rows {
        if let Some(check) = read_last(row)? {
            last.push((MethodId(row.id(column::method_id)?), check));
        }
    }
    Ok(last)
}

/// The newest answer for a method whose service answers for all hosts of a cloud, about any of them.
pub async fn last_check_of_cloud(
    run: &mut impl Run,
    method: MethodId,
    cloud: &str,
) -> Result<Option<LastCheck>, DbError> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        " FROM method_checks JOIN hosts ON hosts.id = method_checks.host_id
         WHERE method_checks.method_id = $1 AND hosts.cloud = $2 AND method_checks.checked_at IS NOT NULL
         ORDER BY method_checks.checked_at DESC LIMIT 1"
    );
    let row = fetch_optional(run, sql, args![method.0, cloud]).await?;
    row.as_ref().map_or(Ok(None), read_last)
}

/// The last answers of all methods (or of one) in short. A method for which nothing is asked is left out.
pub async fn check_summaries(
    run: &mut impl Run,
    method_id: Option<MethodId>,
) -> Result<Vec<CheckSummary>, DbError> {
    let sql = "SELECT method_id, count(*) AS targets, count(checked_at) AS answered, count(failing_since) AS failing,
                   max(CAST(CASE outcome WHEN 'confirmed' THEN 1 WHEN 'unknown' THEN 2 WHEN 'worker_missing' THEN 3
                                    WHEN 'refused' THEN 4 END AS bigint)) AS worst,
                   max(checked_at) AS last_at, min(checked_at) AS oldest_at, min(failing_since) AS failing_since
               FROM method_checks WHERE (CAST($1 AS text) IS NULL OR method_id = $1) GROUP BY method_id";
    let rows = fetch_all(run, sql, args![method_id.map(|id| id.0)]).await?;
    let summary = |row: &Row| {
        let worst = row
            .opt_count("worst")?
            .and_then(|rank| usize::try_from(rank).ok());
        Ok(CheckSummary {
            method_id: MethodId(row.id("method_id")?),
            targets: row.count("targets")?,
            answered: row.count("answered")?,
            failing: row.count("failing")?,
            worst: worst.and_then(|rank| CheckOutcome::ALL.get(rank - 1).copied()),
            last_at: row.opt_time("last_at")?,
            oldest_at: row.opt_time("oldest_at")?,
            failing_since: row.opt_time("failing_since")?,
        })
    };
    rows.iter().map(summary).collect()
}

/// Answers that were not good, by driver.
pub async fn failing_checks(run: &mut impl Run) -> Result<Vec<(String, u64)>, DbError> {
    let sql = "SELECT methods.driver AS driver, count(*) AS failing FROM method_checks
               JOIN methods ON methods.id = method_checks.method_id
               WHERE method_checks.failing_since IS NOT NULL GROUP BY methods.driver";
    let rows = fetch_all(run, sql, args![]).await?;
    rows.iter()
        .map(|row| Ok((row.text("driver")?, row.count("failing")?)))
        .collect()
}
