//! Engines, and the queues that their tasks go to.

use ringfence_core::{Resource, TaskQueue, Timestamp};

use crate::DbError;
use crate::run::{Run, execute, fetch_all};
use crate::value::args;

/// An engine that has said that it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineRow {
    /// Tells it from all others.
    pub id: String,
    /// Its name in the configuration.
    pub name: String,
    /// Its version.
    pub version: String,
    /// When it last said that it runs.
    pub seen_at: Timestamp,
}

/// An engine says that it runs.
pub async fn save_engine(run: &mut impl Run, engine: &EngineRow) -> Result<(), DbError> {
    let sql = "INSERT INTO engines (id, name, version, seen_at) VALUES ($1, $2, $3, $4)
               ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at";
    let values = args![
        engine.id.as_str(),
        engine.name.as_str(),
        engine.version.as_str(),
        engine.seen_at
    ];
    execute(run, sql, values).await.map(|_| ())
}

/// Forgets the engines that have said nothing since.
pub async fn forget_engines(run: &mut impl Run, since: Timestamp) -> Result<u64, DbError> {
    execute(run, "DELETE FROM engines WHERE seen_at < $1", args![since]).await
}

/// The engines, by name, at most `limit`.
pub async fn list_engines(run: &mut impl Run, limit: u32) -> Result<Vec<EngineRow>, DbError> {
    let sql = "SELECT id, name, version, seen_at FROM engines ORDER BY name, seen_at DESC, id LIMIT $1";
    let rows = fetch_all(run, sql, args![limit]).await?;
    let read = |row: &crate::row::Row| {
        Ok(EngineRow {
            id: row.text("id")?,
            name: row.text("name")?,
            version: row.text("version")?,
            seen_at: row.time("seen_at")?,
        })
    };
    rows.iter().map(read).collect()
}

/// The queues that tasks of the present hosts and methods can go to, by zone; at most `limit`. A method without a zone is used in its host's.
pub async fn task_queues(run: &mut impl Run, limit: u32) -> Result<Vec<TaskQueue>, DbError> {
    let sql = "SELECT resource, zone FROM methods WHERE zone IS NOT NULL
               UNION
               SELECT methods.resource, zones.zone
               FROM (SELECT DISTINCT resource FROM methods WHERE zone IS NULL) AS methods,
                    (SELECT DISTINCT zone FROM hosts) AS zones
               ORDER BY zone, resource LIMIT $1";
    let rows = fetch_all(run, sql, args![limit]).await?;
    let read = |row: &crate::row::Row| {
        Ok(TaskQueue {
            resource: row.word("resource", Resource::from_word)?,
            zone: row.text("zone")?,
        })
    };
    rows.iter().map(read).collect()
}
