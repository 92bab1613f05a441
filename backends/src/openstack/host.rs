//! One host of one cloud, the time limit of a task on it, and the task's result.

use std::time::Duration;

use ringfence_core::ObservedState;
use tokio::time::Instant;

use super::Cloud;
use crate::{BackendError, TimeGiven};

/// Between two reads of a state that changes within seconds.
pub(super) const PAUSE: Duration = Duration::from_millis(300);
/// Calls to one service at a time, where many are needed.
pub(super) const AT_ONCE: usize = 8;

/// One host of one cloud.
#[derive(Clone, Copy)]
pub struct HostOf<'a> {
    /// The cloud.
    pub cloud: &'a Cloud,
    /// The host's name in the cloud.
    pub host: &'a str,
    /// The time limit of the task.
    pub time: TimeGiven,
}

impl HostOf<'_> {
    /// Whether there is time for one more look.
    pub(super) fn has_time(&self) -> bool {
        Instant::now() + PAUSE * 2 < self.time.until
    }
}

/// What was read back, and when the reading began.
#[derive(Debug)]
pub struct ReadBack {
    /// The reading, in words.
    pub detail: String,
    /// When the reading began.
    pub from: Instant,
    /// The state before the command, where it was read.
    pub before: Option<ObservedState>,
}

impl ReadBack {
    pub(super) fn new(detail: impl Into<String>, from: Instant) -> Self {
        Self {
            detail: detail.into(),
            from,
            before: None,
        }
    }
}

/// How a fencing task on a service of a cloud went.
#[derive(Debug)]
pub enum Fenced {
    /// The wanted state was read back.
    So(ReadBack),
    /// The wanted state was read back, but is no proof that the host is cut off.
    OnPaper(ReadBack),
    /// A definite no: nothing was changed.
    No(String),
    /// The state is not known, or is not yet the wanted one.
    NotYet(String),
}

/// Whether the service would give this error to each further request of the attempt.
pub(super) fn is_hopeless(error: &BackendError) -> bool {
    match error {
        BackendError::Denied { .. } | BackendError::Settings { .. } | BackendError::Version { .. } => true,
        BackendError::NotFound { .. }
        | BackendError::NoEndpoint { .. }
        | BackendError::Refused { .. }
        | BackendError::Away { .. }
        | BackendError::Late { .. }
        | BackendError::Unreadable { .. } => false,
    }
}
