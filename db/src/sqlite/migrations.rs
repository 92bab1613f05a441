//! Bringing the schema up to date.

use std::collections::BTreeMap;
use std::time::Instant;

use rusqlite::Error;
use sqlx::migrate::{MigrateError, Migration, Migrator};

use super::connection::Connection;
use crate::value::args;

/// Named as other tools of that library name it.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS _sqlx_migrations (
    version BIGINT PRIMARY KEY,
    description TEXT NOT NULL,
    installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    success BOOLEAN NOT NULL,
    checksum BLOB NOT NULL,
    execution_time BIGINT NOT NULL
)";

/// Carries out the migrations that were not yet, all of them or none: one process at a time looks and migrates.
pub(crate) fn carry_out(connection: &mut Connection, migrator: &Migrator) -> Result<(), MigrateError> {
    connection.begin().map_err(fault)?;
    let done = all(connection, migrator);
    let ended = match &done {
        Ok(()) => connection.commit(),
        Err(_) => connection.roll_back(),
    };
    done?;
    ended.map_err(fault)
}

fn all(connection: &mut Connection, migrator: &Migrator) -> Result<(), MigrateError> {
    connection.script(TABLE).map_err(fault)?;
    let known = known(connection)?;
    for migration in migrator.iter() {
        match known.get(&migration.version) {
            Some(checksum) if *checksum == hex(migration) => {}
            Some(_) => return Err(MigrateError::VersionMismatch(migration.version)),
            None => one(connection, migration).map_err(fault)?,
        }
    }
    Ok(())
}

/// Those that were carried out, with the checksums of their texts.
fn known(connection: &mut Connection) -> Result<BTreeMap<i64, String>, MigrateError> {
    let sql = "SELECT version, hex(checksum) AS checksum FROM _sqlx_migrations";
    let rows = connection.rows(sql, args![]).map_err(fault)?;
    let read = |row: &super::SqliteRow| {
        let (version, checksum) = (row.int("version")?, row.text("checksum")?);
        Ok((
            version.unwrap_or_default(),
            checksum.unwrap_or_default().to_owned(),
        ))
    };
    let known: Result<_, String> = rows.iter().map(read).collect();
    known.map_err(|why| MigrateError::Source(why.into()))
}

fn one(connection: &mut Connection, migration: &Migration) -> Result<(), Error> {
    let begun = Instant::now();
    connection.script(migration.sql.as_str())?;
    let took = i64::try_from(begun.elapsed().as_nanos()).unwrap_or(i64::MAX);
    let sql = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
               VALUES ($1, $2, TRUE, unhex($3), $4)";
    let values = args![migration.version, &*migration.description, hex(migration), took];
    connection.change(sql, values).map(|_| ())
}

fn hex(migration: &Migration) -> String {
    migration
        .checksum
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect()
}

fn fault(error: Error) -> MigrateError {
    MigrateError::Source(error.into())
}
