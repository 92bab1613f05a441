//! Questions about devices and drivers, outside any operation. Nothing is changed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringfence_bus::{
    Audience, BusError, CheckRequest, Delivery, DeviceReply, DeviceRequest, HeartbeatsRequest, Message,
    QueryRequest, Queue, ReplyTo, SurveyRequest, Trace, ValidateRequest,
};
use ringfence_core::{Answer, CephSurvey, FrozenMethod, Heartbeat, Observation, Outcome, Problem};
use tokio::time::{Instant, timeout, timeout_at};
use tracing::{Instrument, Span};

use super::context::Context;
use super::metrics::Metrics;
use super::unless;
use crate::driver::{Driver, HostInStorage};
use crate::text::cut;
use crate::{Secrets, WorkerError, act};

/// How long a validation may take.
const VALIDATE_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest that a status is waited for, whatever the question says.
const MAX_CHECK: Duration = Duration::from_secs(60);

pub(super) async fn handle(context: Arc<Context>, queue: Queue, delivery: Delivery) {
    let Delivery {
        message,
        settle,
        reply_to,
        ..
    } = delivery;
    let settled = match (
        context.open::<DeviceRequest>(&Audience::Queue(queue), &message),
        reply_to,
    ) {
        (Ok(request), Some(reply_to)) => {
            let answering = async {
                if let Err(error) = answer(&context, request, &message, &reply_to).await {
                    tracing::warn!(%error, "an answer about a device could not be sent");
                }
            };
            // Nothing is lost with a question: another worker may answer it yet.
            match unless(&context.stop, answering.instrument(span(&context, &message))).await {
                Some(()) => settle.ack().await,
                None => settle.requeue().await,
            }
        }
        (Ok(_), None) | (Err(_), _) => settle.reject().await,
    };
    if let Err(error) = settled {
        tracing::warn!(%error, "a delivery could not be settled");
    }
}

/// Of the highest level, so that a warning shows its fields whatever the log's level is.
fn span(context: &Context, message: &Message) -> Span {
    let from = message.trace.as_deref().and_then(Trace::parse);
    tracing::error_span!(
        "answer",
        trace_id = from.map(|from| display(from.id())),
        parent_id = from.map(|from| display(from.span_id())),
        worker = context.config.name,
    )
}

async fn answer(
    context: &Context,
    request: DeviceRequest,
    message: &Message,
    reply_to: &ReplyTo,
) -> Result<(), BusError> {
    let started = Instant::now();
    let worker = context.config.name.clone();
    let took_ms = || u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let reply = match request {
        DeviceRequest::Validate(request) => Ok(validate(context, &request).await),
        DeviceRequest::Check(request) => check(context, &request).await.map(|observed| match observed {
            None => DeviceReply::Busy {
                worker: worker.clone(),
            },
            Some(observation) => DeviceReply::Checked {
                observation,
                worker: worker.clone(),
                took_ms: took_ms(),
            },
        }),
        DeviceRequest::Survey(request) => {
            survey(context, &request)
                .await
                .map(|survey| DeviceReply::Surveyed {
                    survey,
                    worker: worker.clone(),
                    took_ms: took_ms(),
                })
        }
        DeviceRequest::Query(request) => query(context, &request).await.map(|said| DeviceReply::Answered {
            said,
            worker: worker.clone(),
            took_ms: took_ms(),
        }),
        DeviceRequest::Heartbeats(request) => {
            heartbeats(context, &request)
                .await
                .map(|heartbeats| DeviceReply::Read {
                    heartbeats,
                    worker: worker.clone(),
                    took_ms: took_ms(),
                })
        }
    };
    let reply = reply.unwrap_or_else(|error| DeviceReply::Failed {
        outcome: outcome(&error),
        detail: cut(&error.to_string()),
        worker,
        took_ms: took_ms(),
    });
    let sealed = context.seal(&Audience::Reply(message.id), &reply, message.trace.as_deref())?;
    context.bus.respond(reply_to, message, &sealed).await?;
    Metrics::count(&context.metrics.questions_answered);
    Ok(())
}

async fn validate(context: &Context, request: &ValidateRequest) -> DeviceReply {
    let no_driver = || {
        Problem::new(
            "driver",
            format!(
                "is {}, which worker {} does not have",
                request.driver, context.config.name
            ),
        )
    };
    let problems = match context.drivers.get(&request.driver) {
        None => vec![no_driver()],
        Some(driver) => timeout(VALIDATE_TIMEOUT, driver.validate(request))
            .await
            .unwrap_or_else(|_| vec![Problem::new("driver", "could not check the parameters in time")]),
    };
    DeviceReply::Validated { problems }
}

/// `None` if an attempt needs the device.
async fn check(context: &Context, request: &CheckRequest) -> Result<Option<Observation>, WorkerError> {
    let method = &request.method;
    let driver = driver_of(context, method)?;
    let until = until(request.budget_ms);
    let checking = context.locks.ask(method.device.as_deref(), async {
        let _place = context.answering.acquire().await;
        let secrets = context.drivers.secrets(&method.secrets).await?;
        let observed = driver.observe(method, &secrets, left(until)).await;
        observed.map_err(|error| act::clean_error(error, &secrets))
    });
    match timeout_at(until, checking).await {
        Ok(checked) => checked.transpose(),
        Err(_) => Err(WorkerError::unclear(
            "the device was not free or did not answer in time",
        )),
    }
}

/// No attempt waits for a storage that is asked what a fence would cost it.
async fn survey(context: &Context, request: &SurveyRequest) -> Result<CephSurvey, WorkerError> {
    let (method, until) = (&request.method, until(request.budget_ms));
    let about = HostInStorage {
        host: &request.host,
        gone: &request.gone,
    };
    let asking = async {
        let _place = context.answering.acquire().await;
        let (driver, secrets) = with_secrets(context, method).await?;
        let survey = driver.survey(method, &secrets, about, left(until)).await;
        survey.map_err(|error| act::clean_error(error, &secrets))
    };
    timeout_at(until, asking).await.unwrap_or_else(|_| Err(late()))
}

async fn query(context: &Context, request: &QueryRequest) -> Result<Answer, WorkerError> {
    let (method, until) = (&request.method, until(request.budget_ms));
    let asking = async {
        let _place = context.answering.acquire().await;
        let (driver, secrets) = with_secrets(context, method).await?;
        let answer = driver.ask(method, &secrets, &request.question, left(until)).await;
        answer.map_err(|error| act::clean_error(error, &secrets))
    };
    timeout_at(until, asking).await.unwrap_or_else(|_| Err(late()))
}

/// It takes no place from other questions: a storage that hangs would keep them all.
async fn heartbeats(
    context: &Context,
    request: &HeartbeatsRequest,
) -> Result<BTreeMap<String, Heartbeat>, WorkerError> {
    let (method, until) = (&request.method, until(request.budget_ms));
    let reading = async {
        let (driver, secrets) = with_secrets(context, method).await?;
        let read = driver
            .heartbeats(method, &secrets, &request.hosts, left(until))
            .await;
        read.map_err(|error| act::clean_error(error, &secrets))
    };
    timeout_at(until, reading).await.unwrap_or_else(|_| Err(late()))
}

fn late() -> WorkerError {
    WorkerError::unclear("no answer came in time")
}

async fn with_secrets(
    context: &Context,
    method: &FrozenMethod,
) -> Result<(Arc<dyn Driver>, Secrets), WorkerError> {
    let driver = driver_of(context, method)?;
    Ok((driver, context.drivers.secrets(&method.secrets).await?))
}

fn driver_of(context: &Context, method: &FrozenMethod) -> Result<Arc<dyn Driver>, WorkerError> {
    let known = context.drivers.get(&method.driver);
    known.ok_or_else(|| WorkerError::refused(format!("this worker has no driver {}", method.driver)))
}

fn until(budget_ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(budget_ms).min(MAX_CHECK)
}

/// What is left for a driver, so that its own words come before the end.
fn left(until: Instant) -> Duration {
    let left = until.saturating_duration_since(Instant::now());
    left - left / 20
}

/// What a fault says: asked again, the device would refuse again.
fn outcome(error: &WorkerError) -> Outcome {
    match error {
        WorkerError::Refused { .. } | WorkerError::Secret { .. } | WorkerError::Configuration(_) => {
            Outcome::Refused
        }
        WorkerError::Unclear { .. } | WorkerError::Bus(_) => Outcome::Unknown,
    }
}
