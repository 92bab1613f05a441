//! Subscriptions: what they are, who delivers for them, and how far they have got.

use ringfence_core::{MessageFormat, Subscription, SubscriptionId, Timestamp};
use sqlx::AssertSqlSafe;

use crate::DbError;
use crate::columns::table;
use crate::row::Row;
use crate::run::{Run, execute, fetch_all, fetch_optional};
use crate::value::{Value, args, key};

table! {
    "subscriptions":
    id, name, description, url, format, filter, enabled, disabled_reason, secret_versions, revision, created_at,
    updated_at, after_sequence,
}

fn read(row: &Row) -> Result<Subscription, DbError> {
    Ok(Subscription {
        id: SubscriptionId(row.id(column::id)?),
        name: row.text(column::name)?,
        description: row.text(column::description)?,
        url: row.text(column::url)?,
        format: row.word(column::format, MessageFormat::from_word)?,
        filter: row.json(column::filter)?,
        enabled: row.flag(column::enabled)?,
        disabled_reason: row.opt_text(column::disabled_reason)?,
        secret: row.json(column::secret_versions)?,
        revision: row.count(column::revision)?,
        created_at: row.time(column::created_at)?,
        updated_at: row.time(column::updated_at)?,
    })
}

/// How far a subscription has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Every event with a number up to this one was delivered, or does not pass the filter.
    pub after_sequence: u64,
    /// Events that were tried and not delivered yet.
    pub retrying: u64,
}

/// All subscriptions by name, at most `limit`.
pub async fn list_subscriptions(run: &mut impl Run, limit: u32) -> Result<Vec<Subscription>, DbError> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        " FROM subscriptions ORDER BY name LIMIT $1"
    );
    fetch_all(run, sql, args![limit])
        .await?
        .iter()
        .map(read)
        .collect()
}

/// The subscription with this id or name.
pub async fn subscription(run: &mut impl Run, id_or_name: &str) -> Result<Option<Subscription>, DbError> {
    let (column, key) = key(id_or_name);
    let sql = format!("SELECT {} FROM subscriptions WHERE {column} = $1", columns!());
    let row = fetch_optional(run, AssertSqlSafe(sql), vec![key]).await?;
    row.as_ref().map(read).transpose()
}

/// How far a subscription has got; `None` if there is none.
pub async fn subscription_progress(
    run: &mut impl Run,
    id: SubscriptionId,
) -> Result<Option<Progress>, DbError> {
    let sql = "SELECT after_sequence,
                   (SELECT count(*) FROM deliveries
                    WHERE deliveries.subscription_id = subscriptions.id AND deliveries.kind = 'event'
                        AND deliveries.status = 'pending' AND deliveries.sequence > subscriptions.after_sequence) AS retrying
               FROM subscriptions WHERE id = $1";
    let row = fetch_optional(run, sql, args![id.0]).await?;
    row.map(|row| {
        Ok(Progress {
            after_sequence: row.count("after_sequence")?,
            retrying: row.count("retrying")?,
        })
    })
    .transpose()
}

/// How many subscriptions there are.
pub async fn count_subscriptions(run: &mut impl Run) -> Result<u64, DbError> {
    let row = fetch_optional(run, "SELECT count(*) AS n FROM subscriptions", args![]).await?;
    row.map_or(Ok(0), |row| row.count("n"))
}

fn values(subscription: &Subscription) -> Vec<Value> {
    args![
        subscription.id.0,
        &subscription.name,
        &subscription.description,
        &subscription.url,
        subscription.format.as_str(),
        Value::json(&subscription.filter),
        subscription.enabled,
        subscription.disabled_reason.clone(),
        Value::json(&subscription.secret),
        subscription.revision,
        subscription.created_at,
        subscription.updated_at
    ]
}

/// Adds a subscription that is told of events with a number above `after`.
pub async fn insert_subscription(
    run: &mut impl Run,
    subscription: &Subscription,
    after: u64,
) -> Result<(), DbError> {
    let sql = "INSERT INTO subscriptions
                   (id, name, description, url, format, filter, enabled, disabled_reason, secret_versions, revision, created_at,
                    updated_at, after_sequence)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
    let values = [values(subscription), args![after]].concat();
    execute(run, sql, values).await.map(|_| ())
}

/// Replaces a subscription if it is still at `revision`; tells whether it was. With `after`, it goes on from there. An engine that
/// delivers for it has to take it again.
pub async fn update_subscription(
    run: &mut impl Run,
    subscription: &Subscription,
    after: Option<u64>,
    revision: u64,
) -> Result<bool, DbError> {
    let sql = "UPDATE subscriptions SET name = $2, description = $3, url = $4, format = $5, filter = $6, enabled = $7,
                   disabled_reason = $8, secret_versions = $9, revision = $10, created_at = $11, updated_at = $12,
                   after_sequence = coalesce($13, after_sequence), held_by = NULL, held_until = NULL
               WHERE id = $1 AND revision = $14";
    let values = [values(subscription), args![after, revision]].concat();
    Ok(execute(run, sql, values).await? == 1)
}

/// Removes a subscription and its deliveries.
pub async fn delete_subscription(run: &mut impl Run, id: SubscriptionId) -> Result<bool, DbError> {
    Ok(execute(run, "DELETE FROM subscriptions WHERE id = $1", args![id.0]).await? == 1)
}

/// Subscriptions that are to be delivered for and that no engine delivers for.
pub async fn free_subscriptions(
    run: &mut impl Run,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<SubscriptionId>, DbError> {
    let sql = "SELECT id FROM subscriptions WHERE enabled AND (held_until IS NULL OR held_until <= $1)
               ORDER BY name LIMIT $2";
    let rows = fetch_all(run, sql, args![now, limit]).await?;
    rows.iter().map(|row| row.id("id").map(SubscriptionId)).collect()
}

/// Takes a subscription to deliver for it until `until`; `None` if another engine has it or it is not enabled. Returns it with the
/// number that it has got to.
pub async fn hold_subscription(
    run: &mut impl Run,
    id: SubscriptionId,
    holder: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<(Subscription, u64)>, DbError> {
    let sql = concat!(
        "UPDATE subscriptions SET held_by = $2, held_until = $4
         WHERE id = $1 AND enabled AND (held_until IS NULL OR held_until <= $3)
         RETURNING ",
        columns!()
    );
    let row = fetch_optional(run, sql, args![id.0, holder, now, until]).await?;
    row.map(|row| Ok((read(&row)?, row.count(column::after_sequence)?)))
        .transpose()
}

/// Keeps a subscription that one holds, and notes how far it has got; `false` if one does not hold it any more.
pub async fn keep_subscription(
    run: &mut impl Run,
    id: SubscriptionId,
    holder: &str,
    after_sequence: u64,
    until: Timestamp,
) -> Result<bool, DbError> {
    let sql = "UPDATE subscriptions SET after_sequence = $3, held_until = $4 WHERE id = $1 AND held_by = $2";
    Ok(execute(run, sql, args![id.0, holder, after_sequence, until]).await? == 1)
}

/// Lets others have a subscription.
pub async fn free_subscription(run: &mut impl Run, id: SubscriptionId, holder: &str) -> Result<(), DbError> {
    let sql = "UPDATE subscriptions SET held_by = NULL, held_until = NULL WHERE id = $1 AND held_by = $2";
    execute(run, sql, args![id.0, holder]).await.map(|_| ())
}
