//! Status, code and title of each error.

use actix_web::http::StatusCode;
use ringfence_core::Refusal;
use ringfence_engine::EngineError;
use ringfence_scheduler_hook::HookError;

use super::ApiError;

impl ApiError {
    /// Status, code and title of what the engine says.
    pub(crate) fn head_of(error: &EngineError) -> (StatusCode, String, &'static str) {
        engine_head(error)
    }

    /// Status, code and title.
    pub(super) fn head(&self) -> (StatusCode, String, &'static str) {
        let (status, code, title) = match self {
            Self::Unauthorized { .. } => (StatusCode::UNAUTHORIZED, "unauthorized", "Unauthorized"),
            Self::Forbidden { .. } | Self::NotEntitled(_) => {
                (StatusCode::FORBIDDEN, "forbidden", "Forbidden")
            }
            Self::Keystone(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "keystone.unavailable",
                "Keystone unavailable",
            ),
            Self::TooManyRequests { .. } => {
                (StatusCode::TOO_MANY_REQUESTS, "rate.limited", "Too many requests")
            }
            Self::TooManyStreams { .. } => (
                StatusCode::TOO_MANY_REQUESTS,
                "streams.limited",
                "Too many event streams",
            ),
            Self::TooManyFailures { .. } => (
                StatusCode::TOO_MANY_REQUESTS,
                "authentication.limited",
                "Too many failures",
            ),
            Self::NoSuchPath(_) => (StatusCode::NOT_FOUND, "path.not_found", "Not found"),
            Self::MethodNotAllowed { .. } => (
                StatusCode::METHOD_NOT_ALLOWED,
                "method.not_allowed",
                "Method not allowed",
            ),
            Self::Malformed(_) => (StatusCode::BAD_REQUEST, "request.invalid", "Bad request"),
            Self::TooLarge { .. } => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "request.too_large",
                "Body too large",
            ),
            Self::BodyTooSlow { .. } => (StatusCode::REQUEST_TIMEOUT, "request.too_slow", "Body too slow"),
            Self::Encoded(_) => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "request.encoded",
                "Compressed body",
            ),
            Self::NotJson(_) => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "request.not_json",
                "Unsupported media type",
            ),
            Self::Version(_) => (
                StatusCode::NOT_ACCEPTABLE,
                "version.not_acceptable",
                "Version not available",
            ),
            Self::KeyReused(_) => (StatusCode::CONFLICT, "idempotency.reused", "Key used before"),
            Self::KeyRunning(_) => (StatusCode::CONFLICT, "idempotency.running", "Still running"),
            Self::Hook(HookError::Stale { .. }) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "hook.stale",
                "What is known is too old",
            ),
            Self::Hook(HookError::Slow { .. } | HookError::Db(_)) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "database.unavailable",
                "Database unavailable",
            ),
            Self::Engine(error) => return engine_head(error),
        };
        (status, format!("fencing.{code}"), title)
    }
}

fn engine_head(error: &EngineError) -> (StatusCode, String, &'static str) {
    let (status, code, title) = match error {
        EngineError::NotFound { kind, .. } => {
            return (
                StatusCode::NOT_FOUND,
                format!("fencing.{kind}.not_found"),
                "Not found",
            );
        }
        EngineError::Refused(refusal) => return refusal_head(refusal),
        EngineError::Invalid(_) => (StatusCode::BAD_REQUEST, "request.invalid", "Bad request"),
        EngineError::Duplicate(_) => (StatusCode::CONFLICT, "name.taken", "Name taken"),
        EngineError::Changed { .. } => (
            StatusCode::PRECONDITION_FAILED,
            "revision.changed",
            "Changed meanwhile",
        ),
        EngineError::Interrupted => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error"),
        EngineError::KeySpent => (StatusCode::CONFLICT, "idempotency.running", "Still running"),
        EngineError::TooMany(_) => (StatusCode::CONFLICT, "too_many", "Too many"),
        EngineError::WebhooksOff => (StatusCode::CONFLICT, "webhooks.off", "No webhooks"),
        EngineError::Webhooks(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error"),
        EngineError::InUse(_) => (StatusCode::CONFLICT, "in_use", "In use"),
        EngineError::PlanMissing { .. } => (StatusCode::CONFLICT, "plan.missing", "No plan"),
        EngineError::PlanBroken { .. } => (StatusCode::CONFLICT, "plan.broken", "Plan cannot be carried out"),
        EngineError::NoWorker { .. } | EngineError::NotAsked { .. } => {
            (StatusCode::SERVICE_UNAVAILABLE, "worker.missing", "No worker")
        }
        EngineError::DeviceBusy { .. } => (StatusCode::CONFLICT, "device.busy", "Device busy"),
        EngineError::EventsGone { .. } => (StatusCode::GONE, "events.gone", "Events are gone"),
        EngineError::Archive { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error"),
        EngineError::DeviceNeeded { .. } => (StatusCode::CONFLICT, "device.busy", "Device busy"),
        EngineError::DeviceFailed { .. } => (StatusCode::BAD_GATEWAY, "device.failed", "Device failed"),
        EngineError::Db(error) if error.is_passing() => (
            StatusCode::SERVICE_UNAVAILABLE,
            "database.unavailable",
            "Database unavailable",
        ),
        EngineError::NoWrites => (
            StatusCode::SERVICE_UNAVAILABLE,
            "database.unavailable",
            "Database unavailable",
        ),
        EngineError::Db(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error"),
        EngineError::Bus(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "bus.unavailable",
            "Bus unavailable",
        ),
    };
    (status, format!("fencing.{code}"), title)
}

fn refusal_head(refusal: &Refusal) -> (StatusCode, String, &'static str) {
    let (status, title) = match refusal {
        Refusal::OverrideNeedsAdmin => (StatusCode::FORBIDDEN, "Override needs admin"),
        Refusal::NeedsAdmin => (StatusCode::FORBIDDEN, "Forbidden"),
        Refusal::NotApplied { .. } => (StatusCode::CONFLICT, "Nothing applied"),
        Refusal::FencingInFlight { .. } => (StatusCode::CONFLICT, "Fence may still act"),
        Refusal::PlanMissing => (StatusCode::CONFLICT, "No plan"),
        Refusal::HostUp { .. } => (StatusCode::CONFLICT, "Host is up"),
        Refusal::StaleGeneration { .. } => (StatusCode::CONFLICT, "Stale generation"),
        Refusal::StaleObservation { .. } => (StatusCode::CONFLICT, "Stale observation"),
        Refusal::TooManySources { .. } => (StatusCode::CONFLICT, "Too many sources"),
        Refusal::SourceUnknown { .. } => (StatusCode::NOT_FOUND, "Not found"),
        Refusal::IdentityInUse { .. } => (StatusCode::CONFLICT, "Host is in use"),
        Refusal::OperationLive { .. } => (StatusCode::CONFLICT, "Operation is live"),
        Refusal::OperationOver { .. } => (StatusCode::CONFLICT, "Operation is over"),
        Refusal::NotWaiting { .. } => (StatusCode::CONFLICT, "Operation does not wait"),
        Refusal::UndoingInFlight { .. } => (StatusCode::CONFLICT, "Fence is being undone"),
        Refusal::ConfirmationNotSufficient => (StatusCode::CONFLICT, "Confirmation does not suffice"),
        Refusal::Attempt { .. } => (StatusCode::CONFLICT, "Attempt refused"),
        Refusal::GateClosed { .. } => (StatusCode::CONFLICT, "Gate is closed"),
        Refusal::BackendMissing { .. } => (StatusCode::CONFLICT, "No backend"),
        Refusal::HostState(_) | Refusal::NotUp(_) => (StatusCode::CONFLICT, "Host is in another state"),
    };
    (status, format!("fencing.{}", refusal.code()), title)
}
