//! Many things in one request: each is answered for itself, as if it had come alone.

pub(crate) mod failure_states;
pub(crate) mod hosts;

use actix_web::ResponseError;
use ringfence_engine::EngineError;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::ApiError;
use crate::body::{LongBody, parse_owned};
use crate::error::ErrorBody;

/// The largest body, in bytes.
pub(crate) const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;
/// Where these are.
pub(crate) const PATHS: &str = "/bulk/";
/// The most things in a request.
const MOST: usize = 1_000;

type BulkBody = LongBody<MAX_BODY_BYTES>;

/// The things of a request, read.
struct Read<T> {
    things: Vec<T>,
    /// For each thing of the request why it is not among them, if it is not.
    faults: Vec<Option<ApiError>>,
}

impl<T: DeserializeOwned> Read<T> {
    /// Those in the array `field`, each as the body of its own request would be read.
    fn of(field: &str, given: &[&RawValue]) -> Result<Self, ApiError> {
        if given.is_empty() || given.len() > MOST {
            let what = format!("holds {}; 1 to {MOST} are allowed", given.len());
            return Err(ApiError::bad(field, what));
        }
        if let Some(at) = given.iter().position(|item| !item.get().starts_with('{')) {
            let field = format!("{field}[{at}]");
            return Err(ApiError::bad(&field, "is no JSON object; one is allowed"));
        }
        let mut things = Vec::with_capacity(given.len());
        let mut read = |item: &&RawValue| match parse_owned(item.get().as_bytes()) {
            Ok(thing) => {
                things.push(thing);
                None
            }
            Err(error) => Some(error),
        };
        let faults = given.iter().map(&mut read).collect();
        Ok(Self { things, faults })
    }
}

/// What became of each thing of the request: `done` is what became of those that could be read.
fn outcomes<D>(faults: Vec<Option<ApiError>>, done: Vec<Result<D, EngineError>>) -> Vec<Result<D, ApiError>> {
    let mut done = done.into_iter();
    let outcome = |fault: Option<ApiError>| match fault {
        Some(fault) => Some(Err(fault)),
        None => done.next().map(|done| done.map_err(ApiError::from)),
    };
    faults.into_iter().filter_map(outcome).collect()
}

/// The text of a field, whatever is wrong with the rest.
fn text_of(item: &RawValue, field: &str) -> Option<String> {
    let item: serde_json::Value = serde_json::from_str(item.get()).ok()?;
    item.get(field)?.as_str().map(ToOwned::to_owned)
}

/// A failure of the service with every thing is one of the whole request, which is to be sent again.
fn unless_all_failed<T>(
    mut outcomes: Vec<Result<T, ApiError>>,
) -> Result<Vec<Result<T, ApiError>>, ApiError> {
    let has_failed = |outcome: &Result<T, ApiError>| matches!(outcome, Err(error) if error.status_code().is_server_error());
    if outcomes.iter().all(has_failed)
        && let Some(Err(error)) = outcomes.pop()
    {
        return Err(error);
    }
    Ok(outcomes)
}

/// The status of a thing, and what is wrong with it.
fn told<T>(outcome: &Result<T, ApiError>, done: u16) -> (u16, Vec<ErrorBody>) {
    match outcome {
        Ok(_) => (done, Vec::new()),
        Err(error) => (error.status_code().as_u16(), error.bodies()),
    }
}
