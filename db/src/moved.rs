//! What becomes of the log of deliveries when a subscription goes on from another event.

use ringfence_core::SubscriptionId;
use sqlx::AssertSqlSafe;

use crate::run::{Run, execute, fetch_all, fetch_optional};
use crate::value::args;
use crate::{DbError, Tx};

/// Keeps other transactions from changing how far a subscription has got until the transaction ends; returns how far that is.
pub async fn lock_subscription(tx: &mut Tx, id: SubscriptionId) -> Result<Option<u64>, DbError> {
    let lock = tx.dialect().for_update();
    let sql = format!("SELECT after_sequence FROM subscriptions WHERE id = $1{lock}");
    let row = fetch_optional(tx, AssertSqlSafe(sql), args![id.0]).await?;
    row.map(|row| row.count("after_sequence")).transpose()
}

/// Gives up the deliveries of events with a number up to this one: the subscription has gone past them.
pub async fn give_up_deliveries(run: &mut impl Run, id: SubscriptionId, up_to: u64) -> Result<(), DbError> {
    let sql = "UPDATE deliveries SET status = 'failed', next_at = NULL,
                   detail = 'is not tried any more: the subscription has gone past the event'
               WHERE subscription_id = $1 AND kind = 'event' AND status = 'pending' AND sequence <= $2";
    execute(run, sql, args![id.0, up_to]).await.map(|_| ())
}

/// Removes from the log the deliveries of events with a number above `after`, the lowest numbers first, at most `limit`: they are to
/// be delivered anew. Returns the highest number of those removed if there may be more.
pub async fn forget_deliveries(
    run: &mut impl Run,
    id: SubscriptionId,
    after: u64,
    limit: u32,
) -> Result<Option<u64>, DbError> {
    let sql = "DELETE FROM deliveries WHERE id IN
                   (SELECT id FROM deliveries WHERE subscription_id = $1 AND kind = 'event' AND sequence > $2
                    ORDER BY sequence LIMIT $3)
               RETURNING sequence";
    let gone = fetch_all(run, sql, args![id.0, after, limit]).await?;
    if gone.len() < limit as usize {
        return Ok(None);
    }
    let numbers = gone.iter().map(|row| row.count("sequence"));
    Ok(numbers.collect::<Result<Vec<_>, _>>()?.into_iter().max())
}
