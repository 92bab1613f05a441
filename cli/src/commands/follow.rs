//! Follows an operation until it is over, through restarts of the service.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep};

use super::session::Session;
use crate::client::Request;
use crate::client::view::{Host, Operation};
use crate::error::CliError;
use crate::output::progress::Progress;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(250);
/// How long the service may be away before the command fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Follows an operation.
pub struct Follower<'a> {
    session: &'a Session,
    id: String,
    progress: Progress,
    deadline: Option<Instant>,
    /// Cancelled by Ctrl-C.
    stop: Signal,
    /// The last reason why the operation waits.
    waits_for: String,
    away_since: Option<Instant>,
}

impl<'a> Follower<'a> {
    /// Follows the operation, for `timeout` at most.
    pub fn new(session: &'a Session, id: &str, timeout: Option<Duration>) -> Result<Self, CliError> {
        Ok(Self {
            session,
            id: id.to_owned(),
            progress: Progress::new(session.screen.is_for_programs()),
            deadline: timeout.map(|timeout| Instant::now() + timeout),
            stop: signal(SignalKind::interrupt())?,
            waits_for: String::new(),
            away_since: None,
        })
    }

    /// The operation's present state.
    pub async fn look(&mut self) -> Result<Operation, CliError> {
        let id = self.id.clone();
        let operation: Operation = self.get(&["operations", &id]).await?;
        self.progress.show(&operation);
        self.waits_for.clone_from(&operation.detail);
        Ok(operation)
    }

    /// The present state of the operation's host.
    pub async fn host(&mut self, operation: &Operation) -> Result<Host, CliError> {
        self.get(&["hosts", &operation.host_id]).await
    }

    /// Waits until it is time for another look.
    pub async fn pause(&mut self) -> Result<(), CliError> {
        let left = self
            .deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Err(CliError::TimedOut(self.goes_on("the time is up")));
        }
        tokio::select! {
            () = sleep(left.map_or(PAUSE, |left| left.min(PAUSE))) => Ok(()),
            _ = self.stop.recv() => Err(self.stopped()),
        }
    }

    fn stopped(&self) -> CliError {
        CliError::Stopped(self.goes_on("stopped by Ctrl-C"))
    }

    /// Why the command follows the operation no more, what the operation waits for, and how to follow it again.
    fn goes_on(&self, why: &str) -> String {
        let waits_for = if self.waits_for.is_empty() {
            String::new()
        } else {
            format!("\n  {}", self.waits_for)
        };
        format!(
            "{why}, and operation {0} goes on{waits_for}\n  follow it with: ringfence operation watch {0}",
            self.id
        )
    }

    async fn get<T: serde::de::DeserializeOwned>(&mut self, path: &[&str]) -> Result<T, CliError> {
        loop {
            let answer = tokio::select! {
                answer = self.session.client.send(Request::get(path)) => answer,
                _ = self.stop.recv() => return Err(self.stopped()),
            };
            match answer {
                Ok(answer) => {
                    self.away_since = None;
                    return answer.view();
                }
                Err(error) => self.bear(error)?,
            }
            self.pause().await?;
        }
    }

    /// Waits while the service is away for a short time, as when it restarts.
    fn bear(&mut self, error: CliError) -> Result<(), CliError> {
        let is_passing = error.is_passing();
        if self.away_since.is_none() && is_passing {
            self.progress.note("the service does not answer; trying again");
        }
        let since = *self.away_since.get_or_insert_with(Instant::now);
        if is_passing && since.elapsed() < PATIENCE {
            Ok(())
        } else {
            Err(error)
        }
    }
}

/// Follows an operation to its end.
pub async fn until_succeeded(
    session: &Session,
    id: &str,
    timeout: Option<Duration>,
) -> Result<Operation, CliError> {
    let mut follower = Follower::new(session, id, timeout)?;
    loop {
        let operation = follower.look().await?;
        if operation.status == "succeeded" {
            return Ok(operation);
        }
        if operation.is_over() {
            return Err(ended(&operation));
        }
        follower.pause().await?;
    }
}

/// Why an operation that is over did not succeed.
#[must_use]
pub fn ended(operation: &Operation) -> CliError {
    let why = if operation.detail.is_empty() {
        "no reason was given"
    } else {
        &operation.detail
    };
    let (host, kind, id) = (operation.host_name(), &operation.kind, &operation.id);
    CliError::NeedsOperator(match operation.status.as_str() {
        "needs_operator" => format!(
            "the {kind} of {host} needs an operator: {why}\n  look at it: ringfence operation show {id}\n  \
             then: ringfence operation retry {id}, or cancel{}",
            confirm_hint(operation)
        ),
        status => format!("the {kind} of {host} is {status}: {why}"),
    })
}

fn confirm_hint(operation: &Operation) -> String {
    if operation.kind != "fence" {
        return String::new();
    }
    let (host, generation) = (operation.host_name(), operation.generation);
    format!(
        "\n  or, once it is certain that the host is off: ringfence host confirm {host} --generation {generation} --reason ..."
    )
}
