//! One host of one cloud, until when something may be done to it, and what comes of it.

use std::time::Duration;

use ringfence_core::ObservedState;
use tokio::time::Instant;

use super::Cloud;
use crate::{BackendError, TimeGiven};

/// Between two looks at what changes within seconds.
pub(super) const PAUSE: Duration = Duration::from_millis(300);
/// Calls to one service at a time, where many are needed.
pub(super) const AT_ONCE: usize = 8;

/// One host of one cloud.
#[derive(Clone, Copy)]
pub struct HostOf<'a> {
    /// The cloud.
    pub cloud: &'a Cloud,
    /// The name that the host has there.
    pub host: &'a str,
    /// The time that there is for it.
    pub time: TimeGiven,
}

impl HostOf<'_> {
    /// Whether there is time for one more look.
    pub(super) fn has_time(&self) -> bool {
        Instant::now() + PAUSE * 2 < self.time.until
    }
}

/// What was read back, and when that began to be read.
#[derive(Debug)]
pub struct ReadBack {
    /// In words.
    pub detail: String,
    /// When the reading began.
    pub from: Instant,
    /// What was shown before anything was told, where that was read.
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

/// How a fencing task on a cloud's service went.
#[derive(Debug)]
pub enum Fenced {
    /// What was wanted was read back.
    So(ReadBack),
    /// What was wanted was read back, and it is no proof that anything is cut off.
    OnPaper(ReadBack),
    /// A definite no: nothing was changed.
    No(String),
    /// It is not known, or not yet so.
    NotYet(String),
}

/// Whether a service would give this answer to each further request of the attempt.
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
