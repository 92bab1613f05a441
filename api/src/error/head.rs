//! Status, code and title of each error.

use actix_web::http::StatusCode;
use ringfence_core::Refusal;
use ringfence_engine::EngineError;
use ringfence_scheduler_hook::HookError;

use super::ApiError;

/// Status, code and title.
type Head = (StatusCode, String, &'static str);

fn head(status: u16, code: &str, title: &'static str) -> Head {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, format!("fencing.{code}"), title)
}

impl ApiError {
    /// Status, code and title.
    pub(super) fn head(&self) -> Head {
        match self {
            Self::Unauthorized { .. } => head(401, "unauthorized", "Unauthorized"),
            Self::Forbidden { .. } | Self::NotEntitled(_) => head(403, "forbidden", "Forbidden"),
            Self::OtherPage => head(403, "page.other", "Page of another site"),
            Self::Keystone(_) => head(503, "keystone.unavailable", "Keystone unavailable"),
            Self::TooManyRequests { .. } => head(429, "rate.limited", "Too many requests"),
            Self::TooManyStreams { .. } => head(429, "streams.limited", "Too many event streams"),
            Self::TooManyFailures { .. } => head(429, "authentication.limited", "Too many failures"),
            Self::NoSuchPath(_) => head(404, "path.not_found", "Not found"),
            Self::MethodNotAllowed { .. } => head(405, "method.not_allowed", "Method not allowed"),
            Self::Malformed(_) => head(400, "request.invalid", "Bad request"),
            Self::TooLarge { .. } => head(413, "request.too_large", "Body too large"),
            Self::BodyTooSlow { .. } => head(408, "request.too_slow", "Body too slow"),
            Self::Encoded(_) => head(415, "request.encoded", "Compressed body"),
            Self::NotJson(_) => head(415, "request.not_json", "Unsupported media type"),
            Self::Version(_) => head(406, "version.not_acceptable", "Version not available"),
            Self::KeyReused(_) => head(409, "idempotency.reused", "Key used before"),
            Self::KeyRunning(_) => head(409, "idempotency.running", "Still running"),
            Self::Hook(HookError::Stale { .. }) => head(503, "hook.stale", "What is known is too old"),
            Self::Hook(HookError::Lead(_)) => head(503, "lead.unconfirmed", "Not known to lead"),
            Self::Hook(HookError::Unnamed(_)) => head(503, "cluster.unavailable", "Cluster unavailable"),
            Self::Waiting => head(503, "lead.waiting", "Waits for the lead"),
            Self::Hook(HookError::Slow { .. } | HookError::Db(_)) => {
                head(503, "database.unavailable", "Database unavailable")
            }
            Self::Engine(error) => engine_head(error),
        }
    }
}

/// Status, code and title of what the engine says.
pub(crate) fn engine_head(error: &EngineError) -> Head {
    match error {
        EngineError::NotFound { kind, .. } => head(404, &format!("{kind}.not_found"), "Not found"),
        EngineError::Refused(refusal) => refusal_head(refusal),
        EngineError::Invalid(_) => head(400, "request.invalid", "Bad request"),
        EngineError::Duplicate(_) => head(409, "name.taken", "Name taken"),
        EngineError::Changed { .. } => head(412, "revision.changed", "Changed meanwhile"),
        EngineError::NotPermitted => head(409, "fence.held", "Fence held"),
        EngineError::Interrupted => head(500, "internal", "Internal error"),
        EngineError::KeySpent => head(409, "idempotency.running", "Still running"),
        EngineError::TooMany(_) => head(409, "too_many", "Too many"),
        EngineError::WebhooksOff => head(409, "webhooks.off", "No webhooks"),
        EngineError::Webhooks(_) => head(500, "internal", "Internal error"),
        EngineError::InUse(_) => head(409, "in_use", "In use"),
        EngineError::PlanMissing { .. } => head(409, "plan.missing", "No plan"),
        EngineError::PlanBroken { .. } => head(409, "plan.broken", "Plan cannot be carried out"),
        EngineError::NoWorker { .. } | EngineError::NotAsked { .. } => {
            head(503, "worker.missing", "No worker")
        }
        EngineError::DeviceBusy { .. } => head(409, "device.busy", "Device busy"),
        EngineError::EventsGone { .. } => head(410, "events.gone", "Events are gone"),
        EngineError::Archive { .. } => head(500, "internal", "Internal error"),
        EngineError::DeviceNeeded { .. } => head(409, "device.busy", "Device busy"),
        EngineError::DeviceFailed { .. } => head(502, "device.failed", "Device failed"),
        EngineError::Db(error) if error.is_passing() => {
            head(503, "database.unavailable", "Database unavailable")
        }
        EngineError::Record(_) | EngineError::TakenOver { .. } => {
            head(503, "record.unavailable", "Record unavailable")
        }
        EngineError::Lead(_) | EngineError::NotLeading => head(503, "lead.unconfirmed", "Not known to lead"),
        EngineError::NoWrites => head(503, "database.unavailable", "Database unavailable"),
        EngineError::Db(_) => head(500, "internal", "Internal error"),
        EngineError::Bus(_) => head(503, "bus.unavailable", "Bus unavailable"),
    }
}

fn refusal_head(refusal: &Refusal) -> Head {
    let (status, title) = match refusal {
        Refusal::OverrideNeedsAdmin => (403, "Override needs admin"),
        Refusal::NeedsAdmin => (403, "Forbidden"),
        Refusal::NotApplied { .. } => (409, "Nothing applied"),
        Refusal::FencingInFlight { .. } => (409, "Fence may still act"),
        Refusal::LettingGoInFlight { .. } => (409, "Evacuation may still act"),
        Refusal::PlanMissing => (409, "No plan"),
        Refusal::HostUp { .. } => (409, "Host is up"),
        Refusal::AliveSince { .. } => (409, "Host was alive since"),
        Refusal::ReleasedSince { .. } => (409, "Host was released since"),
        Refusal::WordTooOld { .. } | Refusal::WordNotDated { .. } => (409, "Confirmation is too old"),
        Refusal::StaleGeneration { .. } => (409, "Stale generation"),
        Refusal::StaleObservation { .. } => (409, "Stale observation"),
        Refusal::TooManySources { .. } => (409, "Too many sources"),
        Refusal::TooManyConditions { .. } => (409, "Too many conditions"),
        Refusal::SourceUnknown { .. } => (404, "Not found"),
        Refusal::IdentityInUse { .. } => (409, "Host is in use"),
        Refusal::OperationLive { .. } => (409, "Operation is live"),
        Refusal::OperationOver { .. } => (409, "Operation is over"),
        Refusal::NotWaiting { .. } => (409, "Operation does not wait"),
        Refusal::UndoingInFlight { .. } => (409, "Fence is being undone"),
        Refusal::ConfirmationNotSufficient => (409, "Confirmation does not suffice"),
        Refusal::Attempt { .. } => (409, "Attempt refused"),
        Refusal::Quarantined { .. } => (409, "Host is in quarantine"),
        Refusal::Suspended { .. } => (409, "Host is suspended"),
        Refusal::GateClosed { .. } => (409, "Gate is closed"),
        Refusal::BackendMissing { .. } => (409, "No backend"),
        Refusal::HostState(_) | Refusal::NotUp(_) => (409, "Host is in another state"),
    };
    head(status, refusal.code(), title)
}
