//! The table of checks, brought up to date with what has to be asked.

use std::time::Duration;

use ringfence_db::CheckTarget;

use super::questions::wanted;
use super::{later, part_of};
use crate::ids::new_id;
use crate::{Engine, EngineError};

/// Rows that are read at a time.
const PAGE: u32 = 10_000;
/// New questions are spread over so much time each, and over the whole interval at most.
const SPREAD: Duration = Duration::from_millis(250);

/// Brings the table of checks up to date, and that of shared devices.
pub(super) async fn refresh(engine: &Engine, every: Duration) -> Result<(), EngineError> {
    let (mut wanted, sharing) = wanted(engine).await?;
    engine.write_sharing(sharing).await?;
    let mut stale = Vec::new();
    let mut after = None;
    loop {
        let rows = ringfence_db::check_targets(&mut engine.0.db.reader(), after, PAGE).await?;
        after = rows.last().map(|row| row.id);
        let is_last = rows.len() < PAGE as usize;
        for row in rows {
            let key = (row.method_id, row.host_id);
            if wanted
                .get(&key)
                .is_some_and(|question| question.id == row.question)
            {
                wanted.remove(&key);
            } else {
                stale.push(row.id);
            }
        }
        if is_last {
            break;
        }
    }
    ringfence_db::remove_check_targets(&engine.0.db, &stale).await?;
    let now = engine.0.clock.now();
    let count = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
    let spread = SPREAD.saturating_mul(count).min(every);
    let new: Vec<CheckTarget> = wanted
        .into_iter()
        .map(|((method_id, host_id), question)| CheckTarget {
            id: new_id(),
            method_id,
            host_id,
            question: question.id,
            device: question.device,
            next_at: later(now, part_of(spread)),
            missed: 0,
        })
        .collect();
    Ok(ringfence_db::add_check_targets(&engine.0.db, &new).await?)
}
