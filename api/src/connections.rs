//! How long connections are kept.

use std::time::Duration;

/// A connection without a request is closed after this.
///
/// Longer than the 90 s after which common HTTP clients close theirs (`kube-apiserver`, `kube-scheduler` and other programs in Go, `reqwest`):
/// where the server closes first, a request that is sent at that moment gets no answer.
pub const IDLE: Duration = Duration::from_secs(100);
/// The head of a request has to arrive within this.
pub const HEAD_WITHIN: Duration = Duration::from_secs(10);
