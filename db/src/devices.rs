//! One command at a time per device, whichever worker speaks to it.

use std::collections::HashSet;

use chrono::TimeDelta;
use ringfence_core::{AttemptId, Timestamp};
use sqlx::AssertSqlSafe;

use crate::dialect::Dialect;
use crate::run::{Run, Write, fetch_all, write};
use crate::value::MOST_ROWS;
use crate::value::{Value, args, pieces, rows_of};
use crate::{DbError, LoneChange};

/// The longest that a device is taken for; who keeps it says so again. What is taken until later was taken before a clock was set back.
const TAKEN_AT_MOST: TimeDelta = TimeDelta::seconds(60);

/// A device to take.
#[derive(Clone, Debug)]
pub struct DeviceClaim {
    /// Its key.
    pub device: String,
    /// For which attempt.
    pub attempt: AttemptId,
    /// For how long.
    pub until: Timestamp,
}

/// Takes devices, each of which is named once; returns those that were free or the attempt's already. Everybody takes them in one
/// order, so that none of several takers waits for another who waits for it.
pub async fn claim_devices(
    run: &mut impl Run,
    mut claims: Vec<DeviceClaim>,
    now: Timestamp,
) -> Result<HashSet<String>, DbError> {
    claims.sort_by(|a, b| a.device.cmp(&b.device));
    let mut taken = HashSet::new();
    for claims in pieces(&claims) {
        let (sql, values) = claim(claims, now);
        for row in fetch_all(run, AssertSqlSafe(sql), values).await? {
            taken.insert(row.text("device")?);
        }
    }
    Ok(taken)
}

/// Takes a few devices, all of them, or the change does not come about.
pub fn claim_devices_or_end(to: &mut LoneChange, mut claims: Vec<DeviceClaim>, now: Timestamp) {
    claims.sort_by(|a, b| a.device.cmp(&b.device));
    for claims in claims.chunks(MOST_ROWS) {
        let (sql, values) = claim(claims, now);
        to.must(claims.len(), sql, values);
    }
}

fn claim(claims: &[DeviceClaim], now: Timestamp) -> (String, Vec<Value>) {
    const COLUMNS: usize = 4;
    let sql = format!(
        "INSERT INTO device_claims (device, operation_id, attempt, until) VALUES {}
             ON CONFLICT (device) DO UPDATE
                 SET operation_id = excluded.operation_id, attempt = excluded.attempt, until = excluded.until
                 WHERE device_claims.until <= ${now} OR device_claims.until > ${out_of_reach}
                    OR (device_claims.operation_id = excluded.operation_id
                        AND device_claims.attempt = excluded.attempt)
             RETURNING device",
        rows_of(claims.len(), COLUMNS),
        now = claims.len() * COLUMNS + 1,
        out_of_reach = claims.len() * COLUMNS + 2
    );
    let mut values: Vec<Value> = Vec::with_capacity(claims.len() * COLUMNS + 2);
    for claim in claims {
        let attempt = claim.attempt;
        values.extend(args![
            &claim.device,
            attempt.operation_id.0,
            attempt.number,
            claim.until
        ]);
    }
    values.extend(args![now, now + TAKEN_AT_MOST]);
    (sql, values)
}

/// Gives back what attempts have taken, in the order in which everybody takes.
pub async fn release_devices(to: &mut impl Write, attempts: &[AttemptId]) -> Result<(), DbError> {
    const COLUMNS: usize = 2;
    for attempts in pieces(attempts) {
        let attempts_list = rows_of(attempts.len(), COLUMNS);
        let sql = match to.dialect() {
            Dialect::Postgres => format!(
                "WITH held AS (SELECT device FROM device_claims WHERE (operation_id, attempt) IN (VALUES {attempts_list})
                               ORDER BY device FOR UPDATE)
                 DELETE FROM device_claims WHERE device IN (SELECT device FROM held)"
            ),
            // It has one writer, who waits for nobody.
            Dialect::Sqlite => {
                format!("DELETE FROM device_claims WHERE (operation_id, attempt) IN (VALUES {attempts_list})")
            }
        };
        let values = attempts
            .iter()
            .flat_map(|attempt| args![attempt.operation_id.0, attempt.number]);
        write(to, AssertSqlSafe(sql), values.collect()).await?;
    }
    Ok(())
}
