//! Refusals: why an input changes nothing.

use chrono::SecondsFormat;

use crate::{
    AttemptId, Backend, FailureState, Generation, MAX_CONDITIONS, MAX_SOURCES, Operation, OperationId,
    OperationKind, OperationStatus, TaskKind, Timestamp,
};

/// Why an input was refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A fence, or a person's word, for a host that answers.
    #[error("the host is seen UP (by {source_name}); it is not fenced while it answers")]
    HostUp {
        /// Who sees it.
        source_name: String,
    },
    /// A person's word for a host that answers, against which only an admin's override stands.
    #[error("the host is seen UP, and only an admin can override that, with a reason")]
    OverrideNeedsAdmin,
    /// A person's word for another generation than the present one.
    #[error("generation {given} was confirmed, but the host is at generation {current}; look at it again")]
    StaleGeneration {
        /// What was named.
        given: Generation,
        /// What it is.
        current: Generation,
    },
    /// A person's word from before a sign of life of the host.
    #[error(
        "the host was alive at {}, and the word was said at {}; look at the host, and say it again",
        told(alive_at),
        told(said_at)
    )]
    AliveSince {
        /// By when that sign came.
        alive_at: Timestamp,
        /// When it was said.
        said_at: Timestamp,
    },
    /// A person's word from before the end of what may have undone it.
    #[error(
        "something may have been released to the host until {}, and the word was said at {}; look at the host, and say it again",
        told(released_at),
        told(said_at)
    )]
    ReleasedSince {
        /// Until when.
        released_at: Timestamp,
        /// When it was said.
        said_at: Timestamp,
    },
    /// A person's word from too long ago.
    #[error(
        "the word was said at {}, and counts for {WORD_COUNTS_S} s; look at the host, and say it again",
        told(said_at)
    )]
    WordTooOld {
        /// When it was said.
        said_at: Timestamp,
    },
    /// A person's word of which it is not known how old it is.
    #[error(
        "the word was said at {}, and {why}; look at the host, and say it again",
        told(said_at)
    )]
    WordNotDated {
        /// When it was said.
        said_at: Timestamp,
        /// Why that tells nothing.
        why: &'static str,
    },
    /// A person's word that the plan does not count.
    #[error("the plan's sufficient sets do not let an operator's confirmation complete a fence here")]
    ConfirmationNotSufficient,
    /// A release is under way and could undo the fence after it was proven.
    #[error("a {kind} of generation {generation} may still be running until {until}; confirm after that")]
    UndoingInFlight {
        /// What.
        kind: TaskKind,
        /// Of which generation.
        generation: Generation,
        /// Until when at the latest.
        until: Timestamp,
    },
    /// A person's word for something that only an admin's word is good for.
    #[error("only an admin can confirm what was released")]
    NeedsAdmin,
    /// A person's word about a release of what no fence has taken.
    #[error("method {method:?} has no applied fencing on the host; these have: {applied}")]
    NotApplied {
        /// What was named.
        method: String,
        /// The names of those that have, or "none".
        applied: String,
    },
    /// A fence's task is under way and could outlast the word about a release.
    #[error("a {kind} of generation {generation} may still be running until {until}; say so after that")]
    FencingInFlight {
        /// What.
        kind: TaskKind,
        /// Of which generation.
        generation: Generation,
        /// Until when at the latest.
        until: Timestamp,
    },
    /// A step of an evacuation could outlast the word about a release.
    #[error(
        "a {kind} of generation {generation} may still start workloads elsewhere until {until}; give the host back what was taken, and say so, after that"
    )]
    LettingGoInFlight {
        /// What.
        kind: TaskKind,
        /// Of which generation.
        generation: Generation,
        /// Until when at the latest.
        until: Timestamp,
    },
    /// A fence that no plan can be carried out for.
    #[error("no plan can be carried out for the host")]
    PlanMissing,
    /// Another operation holds the host.
    #[error("{kind} {id} of the host is {status}; wait for it or cancel it")]
    OperationLive {
        /// What it is for.
        kind: OperationKind,
        /// Which.
        id: OperationId,
        /// Where it stands.
        status: OperationStatus,
    },
    /// The operation has ended or is not the host's live one.
    #[error("operation {id} has ended")]
    OperationOver {
        /// Which.
        id: OperationId,
    },
    /// Only an operation that waits for an operator or for safeguards can be tried again.
    #[error("operation {id} is {status}; only one that is needs_operator or held can be tried again")]
    NotWaiting {
        /// Which.
        id: OperationId,
        /// Where it stands.
        status: OperationStatus,
    },
    /// A report of the failure state that is older than the one on record.
    #[error("the report was observed at {given}, and one that its source observed at {known} is on record")]
    StaleObservation {
        /// When this one was observed.
        given: Timestamp,
        /// When the known one was observed.
        known: Timestamp,
    },
    /// A report of one source more than a host can have.
    #[error(
        "source {source_name:?} is one more than the {MAX_SOURCES} that a host can have; strike one off that reports no more"
    )]
    TooManySources {
        /// The new one.
        source_name: String,
    },
    /// A source would have more conditions of a host than it may.
    #[error(
        "source {source_name:?} would have more than {MAX_CONDITIONS} conditions of the host, the most that it may have"
    )]
    TooManyConditions {
        /// The source.
        source_name: String,
    },
    /// A source that has never reported on the host.
    #[error("source {source_name:?} has not reported on the host")]
    SourceUnknown {
        /// What was named.
        source_name: String,
    },
    /// A change of what makes the host the one that a proof or an operation is about.
    #[error("{field} cannot be changed while the host is {why}; rejoin it, or end its operation, first")]
    IdentityInUse {
        /// The field.
        field: &'static str,
        /// What rests on it.
        why: &'static str,
    },
    /// A claim, or a sign of life, that no longer counts.
    #[error("attempt {attempt}: {why}")]
    Attempt {
        /// Which.
        attempt: AttemptId,
        /// Why.
        why: &'static str,
    },
    /// A rejoin that a program asks for, of a host that is taken back by a person alone.
    #[error("the host is in quarantine since {}: it was fenced too often; a person takes it back with: ringfence host rejoin", since.to_rfc3339_opts(SecondsFormat::Secs, true))]
    Quarantined {
        /// Since when.
        since: Timestamp,
    },
    /// A rejoin or an evacuation that a program asks for, of a host on which nothing begins by itself.
    #[error("{why}")]
    Suspended {
        /// What is suspended, until when, by whom and why.
        why: String,
    },
    /// An evacuation of a host whose gate is closed.
    #[error("the evacuate gate is closed: {reason}")]
    GateClosed {
        /// Why.
        reason: String,
    },
    /// An evacuation of a host whose platform this Ringfence does not speak to.
    #[error("the host's backend is {backend} and names no cloud that Ringfence moves workloads in")]
    BackendMissing {
        /// What it is.
        backend: Backend,
    },
    /// The host cannot be removed or rejoined as it is.
    #[error("the host is {0}")]
    HostState(&'static str),
    /// A host in another failure state than the input needs.
    #[error("the host is {0}, not UP")]
    NotUp(FailureState),
}

/// How long a person's word counts, in seconds: it says what was so when it was said.
pub const WORD_COUNTS_S: u32 = 600;

fn told(at: &Timestamp) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

impl Refusal {
    /// This operation holds the host.
    pub(crate) fn live(operation: &Operation) -> Self {
        Self::OperationLive {
            kind: operation.kind(),
            id: operation.id,
            status: operation.status,
        }
    }

    /// A stable word for programs, under `fencing.`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::HostUp { .. } => "host.up",
            Self::OverrideNeedsAdmin => "host.override_needs_admin",
            Self::StaleGeneration { .. } => "generation.stale",
            Self::AliveSince { .. } => "host.alive_since",
            Self::ReleasedSince { .. } => "host.released_since",
            Self::WordTooOld { .. } => "word.too_old",
            Self::WordNotDated { .. } => "word.not_dated",
            Self::ConfirmationNotSufficient => "plan.no_operator",
            Self::UndoingInFlight { .. } => "host.undoing",
            Self::NeedsAdmin => "forbidden",
            Self::NotApplied { .. } => "applied_fencing.unknown",
            Self::FencingInFlight { .. } => "host.fencing",
            Self::LettingGoInFlight { .. } => "host.evacuating",
            Self::PlanMissing => "plan.missing",
            Self::OperationLive { .. } => "operation.live",
            Self::OperationOver { .. } => "operation.over",
            Self::NotWaiting { .. } => "operation.not_waiting",
            Self::StaleObservation { .. } => "observation.stale",
            Self::TooManySources { .. } => "source.too_many",
            Self::TooManyConditions { .. } => "conditions.too_many",
            Self::SourceUnknown { .. } => "source.unknown",
            Self::IdentityInUse { .. } => "host.identity_in_use",
            Self::Attempt { .. } => "attempt.refused",
            Self::Quarantined { .. } => "host.quarantined",
            Self::Suspended { .. } => "host.suspended",
            Self::GateClosed { .. } => "gate.closed",
            Self::BackendMissing { .. } => "backend.missing",
            Self::HostState(_) => "host.state",
            Self::NotUp(_) => "host.not_up",
        }
    }
}
