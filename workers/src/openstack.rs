//! What the drivers of a cloud's services have in common: which cloud, which host there, until when, and what comes of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringfence_backends::BackendError;
use ringfence_backends::openstack::Cloud;
use ringfence_bus::ValidateRequest;
use ringfence_core::{Observation, ObservedState, Outcome, Parameters, Problem, TaskKind};
use tokio::time::{Instant, timeout_at};

use crate::WorkerError;
use crate::driver::{Clock, Report};
use crate::text::cut;
use crate::time_given::TimeGiven;

/// Between two looks at what changes within seconds.
pub(crate) const PAUSE: Duration = Duration::from_millis(300);
/// Calls to one service at a time, where many are needed.
pub(crate) const AT_ONCE: usize = 8;

const OUT_OF_TIME: &str = "the time ran out";

/// The clouds of the configuration by name.
pub(crate) struct Clouds(BTreeMap<String, Arc<Cloud>>);

/// One host of one cloud.
#[derive(Clone, Copy)]
pub(crate) struct HostOf<'a> {
    pub cloud: &'a Cloud,
    pub host: &'a str,
    pub time: TimeGiven,
}

impl HostOf<'_> {
    /// Whether there is time for one more look.
    pub fn has_time(&self) -> bool {
        Instant::now() + PAUSE * 2 < self.time.until
    }

    /// Carries out what is wanted, for as long as there is time.
    pub async fn act(
        &self,
        kind: TaskKind,
        acting: impl Future<Output = Result<Done, BackendError>>,
        clock: &Clock,
    ) -> Report {
        let done = match timeout_at(self.time.until, acting).await {
            Ok(Ok(done)) => done,
            // What has failed may have been done, or a part of it: nobody knows.
            Ok(Err(error)) => Done::NotYet(error.to_string()),
            Err(_) => Done::NotYet(OUT_OF_TIME.to_owned()),
        };
        self.report(done, kind.wanted_state(), clock)
    }

    /// Reads what there is to be seen, for as long as there is time.
    pub async fn read<T, E>(&self, looking: impl Future<Output = Result<T, E>>) -> Result<T, WorkerError>
    where
        WorkerError: From<E>,
    {
        let looked = timeout_at(self.time.until, looking).await;
        Ok(looked.map_err(|_| WorkerError::unclear(OUT_OF_TIME))??)
    }
}

impl Clouds {
    pub fn new(clouds: impl IntoIterator<Item = Arc<Cloud>>) -> Self {
        let named = clouds.into_iter().map(|cloud| (cloud.name().to_owned(), cloud));
        Self(named.collect())
    }

    /// The host that these two parameters name.
    pub fn host<'a>(
        &'a self,
        parameters: &'a Parameters,
        [cloud, host]: [&str; 2],
        budget: Duration,
    ) -> Result<HostOf<'a>, String> {
        let time = TimeGiven::of(budget);
        let parameter = |name: &str| {
            let value = parameters.get(name).map(String::as_str);
            value.ok_or_else(|| format!("the task names no {name}"))
        };
        let (cloud, host) = (self.named(parameter(cloud)?)?, parameter(host)?);
        Ok(HostOf { cloud, host, time })
    }

    fn named(&self, name: &str) -> Result<&Cloud, String> {
        let cloud = self.0.get(name).map(Arc::as_ref);
        cloud.ok_or_else(|| {
            let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
            let known = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            format!("this worker's configuration has no cloud {name:?}; it has: {known}")
        })
    }

    /// What can be known of a method without asking its cloud.
    pub fn validate(&self, request: &ValidateRequest) -> Vec<Problem> {
        let named = request.parameters.get("cloud").map(|name| self.named(name));
        let why = named.and_then(Result::err);
        why.map(|why| Problem::new("parameters.cloud", format!("cannot be used: {why}")))
            .into_iter()
            .collect()
    }
}

/// What was read back, and when that began to be read.
pub(crate) struct ReadBack {
    pub detail: String,
    pub from: Instant,
    /// What was shown before anything was told, where that was read.
    pub before: Option<ObservedState>,
}

impl ReadBack {
    pub fn new(detail: impl Into<String>, from: Instant) -> Self {
        Self {
            detail: detail.into(),
            from,
            before: None,
        }
    }
}

/// How a task on a cloud's service went.
pub(crate) enum Done {
    /// What was wanted was read back.
    So(ReadBack),
    /// The same, but it is no proof that anything is cut off.
    OnPaper(ReadBack),
    /// A definite no: nothing was changed.
    No(String),
    /// Nobody knows, or not yet.
    NotYet(String),
}

impl HostOf<'_> {
    fn report(&self, done: Done, wanted: ObservedState, clock: &Clock) -> Report {
        let confirmed = |read: &ReadBack, proves| Report {
            outcome: Outcome::Confirmed,
            observation: Some(Observation {
                state: wanted,
                detail: cut(&read.detail),
                observed_at: clock(),
                after_ms: self.time.ms_before(read.from),
                before: read.before,
                proves,
            }),
            finding: None,
            detail: String::new(),
        };
        match done {
            Done::So(read) => confirmed(&read, true),
            Done::OnPaper(read) => confirmed(&read, false),
            Done::No(detail) => Report::refused(cut(&detail)),
            Done::NotYet(detail) => Report::unknown(cut(&detail)),
        }
    }
}

impl From<BackendError> for WorkerError {
    fn from(error: BackendError) -> Self {
        if error.is_passing() {
            Self::unclear(cut(&error.to_string()))
        } else {
            Self::refused(cut(&error.to_string()))
        }
    }
}

/// Whether asking again in the same attempt would get the same answer.
pub(crate) fn is_hopeless(error: &BackendError) -> bool {
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

/// What was seen without changing anything.
pub(crate) fn seen(state: ObservedState, detail: &str, clock: &Clock) -> Observation {
    Observation {
        state,
        detail: cut(detail),
        observed_at: clock(),
        after_ms: 0,
        before: None,
        proves: false,
    }
}
