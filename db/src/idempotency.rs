//! Keys with which callers repeat a request: what was asked, what was changed for it, and what was answered.

use ringfence_core::Timestamp;
use serde_json::Value as Json;
use uuid::Uuid;

use crate::DbError;
use crate::columns::table;
use crate::row::Row;
use crate::run::{Run, execute, fetch_optional};
use crate::table_rows::TableRows;
use crate::value::args;

/// A caller's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyName<'a> {
    /// Whose it is.
    pub caller: &'a str,
    /// The key.
    pub key: &'a str,
}

/// A key as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyRow {
    /// Of the request that it came with.
    pub digest: String,
    /// The try that carries the request out.
    pub holder: Uuid,
    /// Later than this another try may take it over, unless there is a receipt.
    pub held_until: Timestamp,
    /// What was changed, if anything was.
    pub receipt: Option<Json>,
    /// What was answered, once it was.
    pub answer: Option<Json>,
    /// When it was first seen.
    pub created_at: Timestamp,
}

table! {
    "idempotency_keys":
    digest, holder, held_until, receipt, answer, created_at,
}

fn read(row: &Row) -> Result<KeyRow, DbError> {
    Ok(KeyRow {
        digest: row.text(column::digest)?,
        holder: row.id(column::holder)?,
        held_until: row.time(column::held_until)?,
        receipt: row.opt_json(column::receipt)?,
        answer: row.opt_json(column::answer)?,
        created_at: row.time(column::created_at)?,
    })
}

/// Puts a key down for its first try; `false` if it is there already.
pub async fn insert_key(
    run: &mut impl Run,
    name: KeyName<'_>,
    digest: &str,
    holder: Uuid,
    now: Timestamp,
    held_until: Timestamp,
) -> Result<bool, DbError> {
    let sql = "INSERT INTO idempotency_keys (caller, key, digest, holder, held_until, created_at)
               VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (caller, key) DO NOTHING";
    let values = args![name.caller, name.key, digest, holder, held_until, now];
    Ok(execute(run, sql, values).await? == 1)
}

/// The key, if it is there.
pub async fn key_row(run: &mut impl Run, name: KeyName<'_>) -> Result<Option<KeyRow>, DbError> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        " FROM idempotency_keys WHERE caller = $1 AND key = $2"
    );
    let row = fetch_optional(run, sql, args![name.caller, name.key]).await?;
    row.as_ref().map(read).transpose()
}

/// Gives the key of a try that is out of time, and has changed nothing, to another; `false` if that is not so any more.
pub async fn take_key_over(
    run: &mut impl Run,
    name: KeyName<'_>,
    from: Uuid,
    to: Uuid,
    now: Timestamp,
    held_until: Timestamp,
) -> Result<bool, DbError> {
    let sql = "UPDATE idempotency_keys SET holder = $4, held_until = $5
               WHERE caller = $1 AND key = $2 AND holder = $3 AND held_until <= $6
                   AND receipt IS NULL AND answer IS NULL";
    let values = args![name.caller, name.key, from, to, held_until, now];
    Ok(execute(run, sql, values).await? == 1)
}

/// Notes what is changed, in the transaction that changes it; `false` if the key is another try's by now, or a change was made for
/// it before: then this one must not be made.
pub async fn put_receipt(
    run: &mut impl Run,
    name: KeyName<'_>,
    holder: Uuid,
    receipt: Json,
) -> Result<bool, DbError> {
    let sql = "UPDATE idempotency_keys SET receipt = $4
               WHERE caller = $1 AND key = $2 AND holder = $3 AND receipt IS NULL";
    let values = args![name.caller, name.key, holder, receipt];
    Ok(execute(run, sql, values).await? == 1)
}

/// What is changed for a request with a key.
#[derive(Clone, Debug)]
pub struct NewReceipt<'a> {
    /// The key.
    pub name: KeyName<'a>,
    /// The try that makes the change. Without its key it must not.
    pub holder: Uuid,
    /// What is changed.
    pub receipt: Json,
}

pub(crate) fn receipt_rows(receipts: &[NewReceipt<'_>]) -> TableRows {
    let rows = receipts.iter().map(|new| {
        let name = new.name;
        args![name.caller, name.key, new.holder, new.receipt.clone()]
    });
    let columns = "caller, key, holder, receipt";
    TableRows::update(
        "idempotency_keys",
        columns,
        rows.collect(),
        3,
        " AND idempotency_keys.receipt IS NULL",
    )
}

/// Notes what was answered.
pub async fn put_answer(
    run: &mut impl Run,
    name: KeyName<'_>,
    holder: Uuid,
    answer: Json,
) -> Result<bool, DbError> {
    let sql = "UPDATE idempotency_keys SET answer = $4 WHERE caller = $1 AND key = $2 AND holder = $3";
    let values = args![name.caller, name.key, holder, answer];
    Ok(execute(run, sql, values).await? == 1)
}

/// Forgets a key whose try has changed nothing and whose answer is not kept.
pub async fn release_key(run: &mut impl Run, name: KeyName<'_>, holder: Uuid) -> Result<bool, DbError> {
    let sql = "DELETE FROM idempotency_keys
               WHERE caller = $1 AND key = $2 AND holder = $3 AND receipt IS NULL AND answer IS NULL";
    Ok(execute(run, sql, args![name.caller, name.key, holder]).await? == 1)
}

/// Forgets one key that was first seen before `before`.
pub async fn forget_old_key(
    run: &mut impl Run,
    name: KeyName<'_>,
    before: Timestamp,
) -> Result<bool, DbError> {
    let sql = "DELETE FROM idempotency_keys WHERE caller = $1 AND key = $2 AND created_at < $3";
    Ok(execute(run, sql, args![name.caller, name.key, before]).await? == 1)
}

/// Forgets keys that were first seen before `before`, at most `limit`; returns how many.
pub async fn delete_old_keys(run: &mut impl Run, before: Timestamp, limit: u32) -> Result<u64, DbError> {
    let sql = "DELETE FROM idempotency_keys WHERE (caller, key) IN
                   (SELECT caller, key FROM idempotency_keys WHERE created_at < $1 ORDER BY created_at LIMIT $2)";
    execute(run, sql, args![before, limit]).await
}
