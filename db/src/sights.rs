//! What the sources hear, counted over all hosts.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use ringfence_core::{HEARD_S, SourceCount, Timestamp};
use sqlx::AssertSqlSafe;

use crate::DbError;
use crate::run::{Run, fetch_all, fetch_optional};
use crate::value::args;

/// Sources that are counted, those with the most hosts.
const MOST_SOURCES: u32 = 64;

/// How many hosts each source has reported on, of how many it has said UP lately, and of how many it has for so many seconds without a break. Hosts that are FENCED or being fenced
/// are left out.
pub async fn count_sources(
    run: &mut impl Run,
    quiet_s: u32,
    now: Timestamp,
) -> Result<BTreeMap<String, SourceCount>, DbError> {
    let sources = run.dialect().entries_of("hosts.sources", "by_name");
    let is_heard = "source.value ->> 'state' = 'UP' AND source.value ->> 'reported_at' > $1";
    let sql = format!(
        "SELECT source.key AS name, count(*) AS hosts, count(CASE WHEN {is_heard} THEN 1 END) AS heard,
             count(CASE WHEN {is_heard} AND source.value ->> 'up_since' <= $2 THEN 1 END) AS steady
         FROM hosts CROSS JOIN {sources} AS source
         WHERE hosts.fencing_state = 'UNFENCED'
             AND NOT EXISTS (SELECT 1 FROM operations AS live WHERE live.host_id = hosts.id AND live.finished_at IS NULL
                             AND live.kind = 'fence' AND live.status = 'running')
         GROUP BY source.key
         ORDER BY count(*) DESC, source.key
         LIMIT $3"
    );
    // A time is text here, with a Z at its end.
    let ago = |seconds: i64| (now - TimeDelta::seconds(seconds)).format("%FT%T").to_string();
    let values = args![ago(HEARD_S), ago(i64::from(quiet_s)), MOST_SOURCES];
    let rows = fetch_all(run, AssertSqlSafe(sql), values).await?;
    rows.iter()
        .map(|row| {
            let count = SourceCount {
                hosts: row.count("hosts")?,
                heard: row.count("heard")?,
                steady: row.count("steady")?,
            };
            Ok((row.text("name")?, count))
        })
        .collect()
}

/// Whether a segment wants them counted.
pub(crate) async fn are_sights_wanted(run: &mut impl Run) -> Result<bool, DbError> {
    let sql = "SELECT 1 AS one FROM segments WHERE CAST(policy AS text) LIKE '%\"sight\"%' LIMIT 1";
    Ok(fetch_optional(run, sql, args![]).await?.is_some())
}
