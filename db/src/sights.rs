//! What the sources hear: counted over all hosts, and kept between two counts.

use std::collections::BTreeMap;

use ringfence_core::{Sights, SourceCount, Timestamp};
use sqlx::AssertSqlSafe;

use crate::DbError;
use crate::run::{Run, execute, fetch_all, fetch_optional};
use crate::value::{Value, args};

/// Sources that are counted, those with the most hosts.
const MOST_SOURCES: u32 = 64;

/// How many hosts each source has reported on, and of how many it has said UP after `since`. Hosts that are FENCED or being fenced are left out.
pub async fn count_sources(
    run: &mut impl Run,
    since: Timestamp,
) -> Result<BTreeMap<String, SourceCount>, DbError> {
    let sources = run.dialect().entries_of("hosts.sources", "by_name");
    // A time is text here, and has a Z at its end.
    let sql = format!(
        "SELECT source.key AS name, count(*) AS hosts,
             count(CASE WHEN source.value ->> 'state' = 'UP' AND source.value ->> 'reported_at' > $1 THEN 1 END) AS heard
         FROM hosts CROSS JOIN {sources} AS source
         WHERE hosts.fencing_state = 'UNFENCED'
             AND NOT EXISTS (SELECT 1 FROM operations AS live WHERE live.host_id = hosts.id AND live.finished_at IS NULL
                             AND live.kind = 'fence' AND live.status = 'running')
         GROUP BY source.key
         ORDER BY count(*) DESC, source.key
         LIMIT $2"
    );
    let since = since.format("%FT%T").to_string();
    let rows = fetch_all(run, AssertSqlSafe(sql), args![since, MOST_SOURCES]).await?;
    rows.iter()
        .map(|row| {
            let count = SourceCount {
                hosts: row.count("hosts")?,
                heard: row.count("heard")?,
            };
            Ok((row.text("name")?, count))
        })
        .collect()
}

/// Whether a segment wants them counted.
pub async fn are_sights_wanted(run: &mut impl Run) -> Result<bool, DbError> {
    let sql = "SELECT 1 AS one FROM segments WHERE CAST(policy AS text) LIKE '%\"sight\"%' LIMIT 1";
    Ok(fetch_optional(run, sql, args![]).await?.is_some())
}

/// What they came to at the last count.
pub async fn sights(run: &mut impl Run) -> Result<Sights, DbError> {
    let sql = "SELECT sights FROM everything WHERE one = 1";
    let row = fetch_optional(run, sql, args![]).await?;
    let known = row.map(|row| row.opt_document("sights")).transpose()?.flatten();
    Ok(known.unwrap_or_default())
}

/// Keeps what they came to.
pub async fn set_sights(run: &mut impl Run, sights: &Sights) -> Result<(), DbError> {
    let sql = "UPDATE everything SET sights = $1 WHERE one = 1";
    execute(run, sql, args![Value::document(sights)]).await?;
    Ok(())
}
