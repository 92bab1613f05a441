//! Questions to devices outside any operation, asked through a worker.

use std::time::Duration;

use backon::{ConstantBuilder, Retryable};
use ringfence_bus::{Audience, BusError, CheckRequest, DeviceReply, DeviceRequest, Message, Queue, Trace};
use ringfence_core::{FrozenMethod, Observation, Outcome, Problem, Problems, Resource};
use tracing::Instrument;
use uuid::Uuid;

use crate::heartbeats::{HOST_IN_STORAGE, name_in_storage};
use crate::{Engine, EngineError};

/// How long a worker may take to validate parameters: an agent's metadata takes about 0.1 s, a busy machine more.
pub(crate) const VALIDATE_TIMEOUT: Duration = Duration::from_secs(15);
/// How a question is put again to a queue that takes none at the moment.
const ASK_AGAIN: ConstantBuilder = ConstantBuilder::new()
    .with_delay(Duration::from_millis(300))
    .with_max_times(5);
/// What the way there and back may take beside the device's own time.
pub(crate) const WAY: Duration = Duration::from_secs(3);

/// What a device showed.
#[derive(Clone, Debug)]
pub struct MethodCheck {
    /// The reading.
    pub observation: Observation,
    /// The worker that asked.
    pub worker: String,
    /// Milliseconds that it took.
    pub took_ms: u64,
}

/// Why a reply is not what was asked for.
pub(crate) fn no_answer(reply: DeviceReply) -> EngineError {
    match reply {
        DeviceReply::Failed {
            detail,
            outcome,
            worker,
            ..
        } => EngineError::DeviceFailed {
            detail: format!("{detail} (worker {worker})"),
            is_refused: outcome == Outcome::Refused,
        },
        DeviceReply::Busy { worker } => EngineError::DeviceNeeded { worker },
        DeviceReply::Validated { .. }
        | DeviceReply::Checked { .. }
        | DeviceReply::Surveyed { .. }
        | DeviceReply::Answered { .. }
        | DeviceReply::Read { .. } => EngineError::DeviceFailed {
            detail: "the worker answered another question".to_owned(),
            is_refused: false,
        },
    }
}

impl Engine {
    /// Asks a method's device for its state; nothing is changed. A method whose parameters name the host needs one, and so does a query.
    pub async fn check_method(&self, id: &str, host: Option<&str>) -> Result<MethodCheck, EngineError> {
        let method = self.method_of(id).await?;
        if method.resource == Resource::Query {
            let missing = || {
                Problem::new(
                    "host",
                    "is missing; a query is asked about one host, by its name or id",
                )
            };
            let host = host.ok_or_else(|| Problems(vec![missing()]))?;
            return self.check_query(&method, host).await;
        }
        let drivers = &self.0.drivers;
        let frozen = match host {
            Some(host) => {
                let host = self.state_of(host).await?.host;
                let mut frozen = FrozenMethod::new(drivers, &method, &host)?;
                if method.resource == Resource::Heartbeat {
                    let name = name_in_storage(&mut frozen, &host);
                    frozen.parameters.insert(HOST_IN_STORAGE.to_owned(), name);
                }
                frozen
            }
            None => FrozenMethod::without_host(drivers, &method)?,
        };
        self.check_frozen(frozen).await
    }

    /// Checks a method that is filled in.
    pub(crate) async fn check_frozen(&self, frozen: FrozenMethod) -> Result<MethodCheck, EngineError> {
        let budget = Duration::from_secs(u64::from(frozen.times.attempt_timeout_s));
        let (resource, zone) = (frozen.resource, frozen.zone.clone());
        let budget_ms = u64::try_from(budget.as_millis()).unwrap_or(u64::MAX);
        let request = DeviceRequest::Check(CheckRequest {
            method: frozen,
            budget_ms,
        });
        match self.ask_worker(resource, &zone, &request, budget + WAY).await? {
            DeviceReply::Checked {
                observation,
                worker,
                took_ms,
            } => Ok(MethodCheck {
                observation,
                worker,
                took_ms,
            }),
            other => Err(no_answer(other)),
        }
    }

    /// A queue that was made a moment ago may refuse its first messages.
    async fn request_patiently(
        &self,
        queue: &Queue,
        message: &Message,
        timeout: Duration,
    ) -> Result<Message, BusError> {
        (|| self.0.bus.request(queue, message, timeout))
            .retry(ASK_AGAIN)
            .when(|error| matches!(error, BusError::Full { .. }))
            .await
    }

    pub(crate) async fn ask_worker(
        &self,
        resource: Resource,
        zone: &str,
        request: &DeviceRequest,
        timeout: Duration,
    ) -> Result<DeviceReply, EngineError> {
        let queue = Queue::Devices {
            resource,
            zone: zone.to_owned(),
        };
        let id = Uuid::new_v4();
        let mut message = self.0.keys.seal(id, &Audience::Queue(queue.clone()), request)?;
        let trace = Trace::random(Uuid::new_v4(), id);
        message.trace = Some(trace.to_string());
        let span = tracing::error_span!(
            "question",
            trace_id = %trace.id(),
            span_id = %trace.span_id(),
            resource = resource.as_str(),
            zone,
        );
        let answer = self
            .request_patiently(&queue, &message, timeout)
            .instrument(span)
            .await
            .map_err(|source| match source {
                BusError::Unroutable { .. } | BusError::NoAnswer { .. } => EngineError::NoWorker {
                    resource: resource.as_str(),
                    zone: zone.to_owned(),
                    source,
                },
                other => EngineError::Bus(other),
            })?;
        Ok(self.0.keys.open(&Audience::Reply(id), &answer)?)
    }
}
