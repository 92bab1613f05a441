//! Copies of a SQLite database: consistent while services write, and looked over before they are used.

use std::path::Path;

use sqlx::AssertSqlSafe;

use crate::DbError;
use crate::database::{Database, Pool};
use crate::run::fetch_all;
use crate::value::args;

/// Writes a copy of a SQLite database into a new file: all that was committed at one moment, although others go on writing.
///
/// # Errors
/// The database is PostgreSQL, which has programs of its own for this; the file is there already or cannot be written.
pub async fn copy_sqlite(db: &Database, to: &Path) -> Result<(), DbError> {
    let Pool::Sqlite { read, .. } = &db.pool else {
        return Err(not_sqlite(db));
    };
    let to = args![to.display().to_string()];
    let copied = read
        .work(|connection| connection.change("VACUUM INTO $1", to))
        .await;
    copied
        .map(|_| ())
        .map_err(|e| DbError::from_client(db.address(), e))
}

/// Reads all of a SQLite database and tells what is damaged.
///
/// # Errors
/// It is damaged, or is no database at all.
pub async fn check_sqlite(db: &Database) -> Result<(), DbError> {
    let damaged = |why: String| DbError::Damaged {
        address: db.address().to_owned(),
        why,
    };
    let mut reader = db.reader();
    for row in fetch_all(&mut reader, "PRAGMA integrity_check(10)", args![]).await? {
        let found = row.text("integrity_check")?;
        if found != "ok" {
            return Err(damaged(found));
        }
    }
    let loose = fetch_all(&mut reader, AssertSqlSafe("PRAGMA foreign_key_check"), args![]).await?;
    match loose.first() {
        None => Ok(()),
        Some(row) => Err(damaged(format!(
            "a row of {} refers to one that is not there",
            row.text("table")?
        ))),
    }
}

fn not_sqlite(db: &Database) -> DbError {
    DbError::Address {
        address: db.address().to_owned(),
        why: "only the database of standalone is copied so; PostgreSQL has pg_dump and pg_basebackup"
            .to_owned(),
    }
}

/// The number of the schema; `None` if there is none.
pub async fn schema_version(db: &Database) -> Result<Option<i64>, DbError> {
    crate::schema::version(db).await
}
