//! Why a change was not made.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use ringfence_backends::BackendError;
use ringfence_bus::BusError;
use ringfence_core::{Problems, Refusal};
use ringfence_db::DbError;

/// Why a change was not made. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// There is no such thing.
    #[error("there is no {kind} {id:?}")]
    NotFound {
        /// host, segment, method, plan or operation.
        kind: &'static str,
        /// What was asked for.
        id: String,
    },
    /// The rules say no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// What was given is wrong.
    #[error("{0}")]
    Invalid(#[from] Problems),
    /// The name (or the plan's scope) is taken.
    #[error("{0}")]
    Duplicate(String),
    /// It was changed since it was read.
    #[error("it was changed since it was read: it is at revision {current}, not {given}")]
    Changed {
        /// What was named.
        given: u64,
        /// What it is.
        current: u64,
    },
    /// It cannot be removed while something needs it.
    #[error("{0}")]
    InUse(String),
    /// No plan is found for the host.
    #[error("no plan applies to host {host:?}: none for the host, its type or by default")]
    PlanMissing {
        /// The host's name.
        host: String,
    },
    /// The plan cannot be carried out for the host.
    #[error("plan {plan:?} cannot be carried out for host {host:?}: {problems}")]
    PlanBroken {
        /// The plan's name.
        plan: String,
        /// The host's name.
        host: String,
        /// Why.
        problems: Problems,
    },
    /// No worker serves the zone.
    #[error("no worker for {resource} in zone {zone:?} answered; start one there, or name another zone")]
    NoWorker {
        /// What it would act on.
        resource: &'static str,
        /// The zone.
        zone: String,
        /// What the bus saw.
        #[source]
        source: BusError,
    },
    /// No worker serves the zone, as another question has shown a moment ago.
    #[error("not asked: no worker for {resource} in zone {zone:?} answered a moment ago")]
    NotAsked {
        /// What it would act on.
        resource: &'static str,
        /// The zone.
        zone: String,
    },
    /// The device could not be asked.
    #[error("the device could not be asked: {detail}")]
    DeviceFailed {
        /// Why, in the worker's words.
        detail: String,
        /// Whether that is a definite no.
        is_refused: bool,
    },
    /// The device carries out another command.
    #[error("the device of attempt {attempt} carries out another command")]
    DeviceBusy {
        /// Which.
        attempt: String,
    },
    /// As many fences are under way as may be.
    #[error("as many fences are under way as may be at one time; it is tried again by itself")]
    NotPermitted,
    /// A change was interrupted by a fault of this service.
    #[error(
        "the change was interrupted; whether it was made is not known here, and asking again does no harm"
    )]
    Interrupted,
    /// The record of a host cannot be written or read.
    #[error("the record of the host cannot be written or read, so that nothing was changed")]
    Record(#[source] BackendError),
    /// Another process has taken the record of a host over.
    #[error("another Ringfence has taken the record of host {host:?} over; ask that one")]
    TakenOver {
        /// The host's name.
        host: String,
    },
    /// Whether this process leads is not known.
    #[error("whether this Ringfence leads cannot be found out")]
    Lead(#[source] Arc<BackendError>),
    /// Another process leads.
    #[error("another Ringfence leads; ask that one")]
    NotLeading,
    /// The database answers, and takes no change.
    #[error("the database writes nothing down: it is full, read-only, out of memory, or its disk fails")]
    NoWrites,
    /// Another try has made the change, or carries the request out.
    #[error("another request with this Idempotency-Key has made the change, or is being carried out")]
    KeySpent,
    /// The device is needed for an attempt, which goes before questions.
    #[error("an attempt needs the device; ask again when its operation is over (worker {worker})")]
    DeviceNeeded {
        /// Who said so.
        worker: String,
    },
    /// Events that were asked for have been removed.
    #[error(
        "events after {after} have been removed, up to {up_to}: a client that has not read them cannot read them any more; \
         look at the hosts as they are now, and go on after {up_to}"
    )]
    EventsGone {
        /// After which number they were asked for.
        after: u64,
        /// Up to which number some are missing.
        up_to: u64,
    },
    /// What is to be removed cannot be written down first.
    #[error("the archive {} cannot be written", path.display())]
    Archive {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// There are as many as there may be.
    #[error("{0}")]
    TooMany(String),
    /// There can be no subscriptions.
    #[error("subscriptions need a key to derive their secrets from, and webhooks.keys_file is not set")]
    WebhooksOff,
    /// Webhooks cannot be called as they are configured.
    #[error("webhooks cannot be called: {0}")]
    Webhooks(String),
    /// The database failed.
    #[error(transparent)]
    Db(#[from] DbError),
    /// The bus failed.
    #[error(transparent)]
    Bus(#[from] BusError),
}

impl EngineError {
    /// Whether trying again may help although nothing else changes: the database or the platform that keeps the records went away.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Db(error) => error.is_passing(),
            Self::Record(error) => error.is_passing(),
            _ => false,
        }
    }

    /// There is no such thing of this id or name.
    #[must_use]
    pub fn not_found(kind: &'static str, id: impl Display) -> Self {
        Self::NotFound {
            kind,
            id: id.to_string(),
        }
    }

    /// A unique value that is taken is a conflict, not a fault.
    pub(crate) fn or_duplicate(error: DbError, text: impl FnOnce() -> String) -> Self {
        match error {
            DbError::Constraint {
                is_duplicate: true, ..
            } => Self::Duplicate(text()),
            other => Self::Db(other),
        }
    }
}
