//! Putting one question, and putting its answer on record.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use ringfence_core::{CheckAnswer, CheckOutcome, FrozenMethod, ObservedState, Resource, error_chain};
use ringfence_db::CheckTarget;
use tokio::time::Instant;

use super::{later, part_of};
use crate::devices::MethodCheck;
use crate::{Engine, EngineError};

/// The longest detail that is kept, in characters.
const MAX_DETAIL_CHARS: usize = 500;
/// A queue from which no worker has answered is not asked again for so long.
const LEFT_ALONE: Duration = Duration::from_secs(30);
/// A question that no worker serves is put less and less often, down to every so many intervals.
const MAX_BACKOFF: u32 = 4;
/// Places without a worker that are remembered.
const MAX_PLACES: usize = 1000;

/// Resources and zones for which no worker has answered lately. Waiting for each of their devices in vain would keep the others waiting.
#[derive(Default)]
pub(crate) struct Unserved(Mutex<HashMap<(Resource, String), Instant>>);

impl Unserved {
    fn contains(&self, place: &(Resource, String)) -> bool {
        let places = self.0.lock();
        places.get(place).is_some_and(|at| at.elapsed() < LEFT_ALONE)
    }

    fn note(&self, place: (Resource, String)) {
        let mut places = self.0.lock();
        places.retain(|_, at| at.elapsed() < LEFT_ALONE);
        if places.len() < MAX_PLACES {
            places.insert(place, Instant::now());
        }
    }

    fn forget(&self, place: &(Resource, String)) {
        self.0.lock().remove(place);
    }
}

pub(super) async fn ask(engine: Engine, target: CheckTarget, every: Duration) {
    let id = target.id;
    if let Err(error) = try_ask(&engine, target, every).await {
        tracing::warn!(check = %id, error = %error_chain(&error), "a device could not be checked");
    }
}

async fn try_ask(engine: &Engine, mut target: CheckTarget, every: Duration) -> Result<(), EngineError> {
    let (driver, checked) = check(engine, &target).await;
    let now = engine.0.clock.now();
    let answer = match checked {
        Ok(check) => of_check(check),
        // It has gone, or is needed for something better: the last answer stays.
        Err(EngineError::NotFound { .. } | EngineError::DeviceNeeded { .. }) => {
            let next_at = later(now, every);
            return Ok(ringfence_db::postpone_check(&mut engine.0.db.reader(), target.id, next_at).await?);
        }
        Err(error) => of_error(error)?,
    };
    let wait = if answer.outcome == CheckOutcome::WorkerMissing {
        target.missed = target.missed.saturating_add(1);
        every.saturating_mul(MAX_BACKOFF.min(1 << target.missed.min(MAX_BACKOFF)))
    } else {
        target.missed = 0;
        every
    };
    // A tenth earlier up to a tenth later, so that those that were asked together do not stay together.
    target.next_at = later(now, wait.mul_f64(0.9) + part_of(wait / 5));
    if let Some(driver) = driver {
        engine.0.metrics.count_check(driver, answer.outcome);
    }
    if answer.outcome != CheckOutcome::Confirmed {
        tracing::debug!(
            method = %target.method_id, host_id = target.host_id.map(|id| id.to_string()),
            outcome = answer.outcome.as_str(), detail = answer.detail, "a device did not tell its state"
        );
    }
    ringfence_db::save_check(&mut engine.0.db.reader(), &target, &answer, now).await?;
    Ok(())
}

async fn check(
    engine: &Engine,
    target: &CheckTarget,
) -> (Option<&'static str>, Result<MethodCheck, EngineError>) {
    match frozen(engine, target).await {
        Ok((driver, Ok(frozen))) => (driver, ask_worker(engine, frozen).await),
        Ok((driver, Err(error))) => (driver, Err(error)),
        Err(error) => (None, Err(error)),
    }
}

/// The method as it is now, filled in for the host as it is now.
async fn frozen(
    engine: &Engine,
    target: &CheckTarget,
) -> Result<(Option<&'static str>, Result<FrozenMethod, EngineError>), EngineError> {
    let method = engine.method_of(&target.method_id.to_string()).await?;
    let filled_in = match target.host_id {
        Some(id) => engine.filled_in(&method, &id.to_string()).await?,
        None => FrozenMethod::without_host(&engine.0.drivers, &method),
    };
    let driver = engine.0.drivers.get(&method.driver).map(|declared| declared.name);
    Ok((driver, filled_in.map_err(EngineError::from)))
}

pub(super) async fn ask_worker(engine: &Engine, frozen: FrozenMethod) -> Result<MethodCheck, EngineError> {
    let unserved = &engine.0.unserved;
    let place = (frozen.resource, frozen.zone.clone());
    if unserved.contains(&place) {
        return Err(EngineError::NotAsked {
            resource: place.0.as_str(),
            zone: place.1,
        });
    }
    let answer = engine.check_frozen(frozen).await;
    match &answer {
        Err(EngineError::NoWorker { .. }) => unserved.note(place),
        Ok(_) => unserved.forget(&place),
        Err(_) => {}
    }
    answer
}

fn of_check(check: MethodCheck) -> CheckAnswer {
    let observation = check.observation;
    CheckAnswer {
        outcome: if observation.state == ObservedState::Unknown {
            CheckOutcome::Unknown
        } else {
            CheckOutcome::Confirmed
        },
        state: Some(observation.state.as_str().to_owned()),
        detail: Some(cut(&observation.detail)),
        worker: Some(check.worker),
        took_ms: Some(check.took_ms),
    }
}

/// What an error says about the device; one that says nothing about it stays an error.
fn of_error(error: EngineError) -> Result<CheckAnswer, EngineError> {
    let outcome = match &error {
        EngineError::NoWorker { .. } | EngineError::NotAsked { .. } => CheckOutcome::WorkerMissing,
        EngineError::DeviceFailed { is_refused: true, .. } | EngineError::Invalid(_) => CheckOutcome::Refused,
        EngineError::DeviceFailed {
            is_refused: false, ..
        } => CheckOutcome::Unknown,
        _ => return Err(error),
    };
    Ok(CheckAnswer {
        outcome,
        state: None,
        detail: Some(cut(&error.to_string())),
        worker: None,
        took_ms: None,
    })
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_DETAIL_CHARS).collect()
}
