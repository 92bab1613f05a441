//! Sessions of browsers.

use ringfence_core::Timestamp;
use uuid::Uuid;

use crate::DbError;
use crate::columns::table;
use crate::row::Row;
use crate::run::{Run, execute, fetch_all, fetch_optional};
use crate::value::args;

/// A browser that is signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id, which is no secret.
    pub id: Uuid,
    /// SHA-256 of what its cookie holds, in hexadecimal.
    pub digest: String,
    /// The token that was signed in with, encrypted with a key that the cookie alone holds.
    pub sealed: String,
    /// Whose it is.
    pub actor: String,
    /// The network address that was signed in from.
    pub address: Option<String>,
    /// When it began.
    pub signed_in_at: Timestamp,
    /// When it ends by itself.
    pub expires_at: Timestamp,
}

table! {
    "sessions":
    id, digest, sealed, actor, address, signed_in_at, expires_at,
}

fn read(row: &Row) -> Result<SessionRow, DbError> {
    Ok(SessionRow {
        id: row.id(column::id)?,
        digest: row.text(column::digest)?,
        sealed: row.text(column::sealed)?,
        actor: row.text(column::actor)?,
        address: row.opt_text(column::address)?,
        signed_in_at: row.time(column::signed_in_at)?,
        expires_at: row.time(column::expires_at)?,
    })
}

/// Puts a session down.
pub async fn insert_session(run: &mut impl Run, session: &SessionRow) -> Result<(), DbError> {
    let sql = "INSERT INTO sessions (id, digest, sealed, actor, address, signed_in_at, expires_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let values = args![
        session.id,
        session.digest.as_str(),
        session.sealed.as_str(),
        session.actor.as_str(),
        session.address.as_deref(),
        session.signed_in_at,
        session.expires_at
    ];
    execute(run, sql, values).await.map(|_| ())
}

/// The session of a cookie, unless it is over.
pub async fn session_of(
    run: &mut impl Run,
    digest: &str,
    now: Timestamp,
) -> Result<Option<SessionRow>, DbError> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        " FROM sessions WHERE digest = $1 AND expires_at > $2"
    );
    let row = fetch_optional(run, sql, args![digest, now]).await?;
    row.as_ref().map(read).transpose()
}

/// The sessions of a caller that are not over, the newest first.
pub async fn sessions_of(
    run: &mut impl Run,
    actor: &str,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<SessionRow>, DbError> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        " FROM sessions WHERE actor = $1 AND expires_at > $2 ORDER BY signed_in_at DESC, id LIMIT $3"
    );
    let rows = fetch_all(run, sql, args![actor, now, limit]).await?;
    rows.iter().map(read).collect()
}

/// Removes a session of a caller; `false` if there is none with this id.
pub async fn delete_session(run: &mut impl Run, id: Uuid, actor: &str) -> Result<bool, DbError> {
    let sql = "DELETE FROM sessions WHERE id = $1 AND actor = $2";
    Ok(execute(run, sql, args![id, actor]).await? == 1)
}

/// Removes all sessions that are over.
pub async fn delete_ended_sessions(run: &mut impl Run, now: Timestamp) -> Result<u64, DbError> {
    let sql = "DELETE FROM sessions WHERE expires_at <= $1";
    execute(run, sql, args![now]).await
}

/// Removes the sessions of a caller beyond the newest ones.
pub async fn delete_oldest_sessions(run: &mut impl Run, actor: &str, keep: u32) -> Result<u64, DbError> {
    let sql = "DELETE FROM sessions WHERE actor = $1 AND id NOT IN
               (SELECT id FROM sessions WHERE actor = $1 ORDER BY signed_in_at DESC, id LIMIT $2)";
    execute(run, sql, args![actor, keep]).await
}
