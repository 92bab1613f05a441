//! One command at a time per device, whichever worker speaks to it.

use ringfence_core::{AttemptId, Timestamp};

use crate::DbError;
use crate::run::{Run, execute};
use crate::value::args;

/// Takes the device for an attempt until `until`; tells whether it was free (or the attempt's already).
pub async fn claim_device(
    run: &mut impl Run,
    device: &str,
    attempt: AttemptId,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool, DbError> {
    let sql = "INSERT INTO device_claims (device, operation_id, attempt, until) VALUES ($1, $2, $3, $4)
               ON CONFLICT (device) DO UPDATE
                   SET operation_id = excluded.operation_id, attempt = excluded.attempt, until = excluded.until
                   WHERE device_claims.until <= $5
                      OR (device_claims.operation_id = excluded.operation_id
                          AND device_claims.attempt = excluded.attempt)";
    let values = args![device, attempt.operation_id.0, attempt.number, until, now];
    Ok(execute(run, sql, values).await? == 1)
}

/// Gives back what an attempt has taken.
pub async fn release_devices(run: &mut impl Run, attempt: AttemptId) -> Result<u64, DbError> {
    let sql = "DELETE FROM device_claims WHERE operation_id = $1 AND attempt = $2";
    execute(run, sql, args![attempt.operation_id.0, attempt.number]).await
}
