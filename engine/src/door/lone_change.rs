//! Carries out what waits for one host as a single statement.
//!
//! The host is read without a lock; what is decided upon it is written by a statement that ends with an error if somebody has changed
//! the host since. Then, and wherever one statement is not enough, the long way is taken: lock, decide, write, commit.

use std::collections::HashSet;

use ringfence_core::HostId;
use ringfence_db::{DbError, DeviceClaim, LoneChange, SeenHost, claim_devices_or_end};

use super::group::{Answered, decide_all, end_all};
use super::queue::Knock;
use super::turn::{EventsAre, Turn};
use super::write::Rows;
use crate::idempotency::leave_receipt_or_end;
use crate::{Engine, EngineError};

/// The answers; `None` if nothing was changed and the long way has to be taken.
pub(super) async fn carry_out(
    engine: &Engine,
    knocks: &[Knock],
) -> Result<Option<Vec<Answered>>, EngineError> {
    let Some(host_id) = only_host(engine, knocks) else {
        return Ok(None);
    };
    let Some(seen) = see(engine, host_id, knocks).await? else {
        return Ok(None);
    };
    let Some(mut change) = LoneChange::upon(&seen) else {
        return Ok(None);
    };
    engine.0.clock.catch_up(seen.read_at);
    let mut turns = decide_all(engine, knocks, vec![seen.state]);
    if !turns.iter().any(Turn::writes) {
        return Ok(Some(end_all(engine, knocks, turns, EventsAre::Written).await));
    }
    // Who was halted since the host was read has decided by a time that is over.
    if let Some(latest) = engine.0.clock.latest() {
        change.not_after(latest);
    }
    if !take_devices(engine, &mut change, &turns) {
        return Ok(None);
    }
    for (turn, knock) in turns.iter().zip(knocks) {
        if let Some(receipt) = turn.receipt(knock) {
            leave_receipt_or_end(&mut change, &knock.by, receipt);
        }
    }
    let rows = Rows::of(knocks, &mut turns);
    if !rows.go_together() {
        return Ok(None);
    }
    rows.write(&mut change).await?;
    match change.commit(&engine.0.db).await {
        Ok(written) => {
            let events = if written.is_numbered {
                EventsAre::Numbered
            } else {
                EventsAre::Written
            };
            Ok(Some(end_all(engine, knocks, turns, events).await))
        }
        Err(DbError::Changed) => {
            tracing::debug!(%host_id, "the host was changed by somebody else meanwhile");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// The host that all of them are for. SQLite has no round trips to save.
fn only_host(engine: &Engine, knocks: &[Knock]) -> Option<HostId> {
    let host_id = knocks.first()?.host_id;
    let is_only = knocks.iter().all(|knock| knock.host_id == host_id);
    (is_only && !engine.0.db.is_sqlite()).then_some(host_id)
}

async fn see(engine: &Engine, host_id: HostId, knocks: &[Knock]) -> Result<Option<SeenHost>, EngineError> {
    if let [Knock { seen: Some(seen), .. }] = knocks {
        return Ok(Some(SeenHost::clone(seen)));
    }
    let mut reader = engine.0.db.reader_by_keys();
    Ok(ringfence_db::see_host(&mut reader, &host_id.to_string()).await?)
}

/// Adds the devices that have to be taken; `false` if two want the same one.
fn take_devices(engine: &Engine, change: &mut LoneChange, turns: &[Turn]) -> bool {
    let claims: Vec<DeviceClaim> = turns.iter().filter_map(Turn::wants).collect();
    let devices: HashSet<_> = claims.iter().map(|claim| &claim.device).collect();
    if devices.len() < claims.len() {
        return false;
    }
    claim_devices_or_end(change, claims, engine.0.clock.now());
    true
}
