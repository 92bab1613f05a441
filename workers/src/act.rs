//! The one way in which every driver acts: command, and read until it is so.
//!
//! A task that takes something from a host is commanded whatever the device shows: another command under way may be about to change it. A
//! task that releases is read first, and sends no command where the device already shows the wanted state.

use std::time::Duration;

use async_trait::async_trait;
use ringfence_core::{FencingKind, Observation, ObservedState, Outcome};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::Instrument;
use tracing::field::Empty;

use crate::driver::{Clock, Report};
use crate::text::cut;
use crate::{Secrets, WorkerError};
use ringfence_backends::TimeGiven;

/// One reading of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// It showed a state, exactly.
    State(ObservedState, String),
    /// No answer, or none that can be trusted.
    Unclear(String),
    /// A definite no.
    Refused(String),
}

/// What a device answered to a command. None of this is a success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The device took it, or may have.
    Sent(String),
    /// A definite no.
    Refused(String),
}

/// A device that can be read and commanded. Both have stopped for good by `until`.
#[async_trait]
pub(crate) trait Device: Send + Sync {
    async fn read(&self, until: Instant) -> Reading;
    async fn command(&self, kind: FencingKind, until: Instant) -> Answer;
    /// Between two readings.
    fn pause(&self) -> Duration;
}

/// A reading with less time than this would only be cut off.
const SHORTEST_READING: Duration = Duration::from_millis(300);

/// A silent device must not use up the time that its command needs.
pub(crate) fn end_of_first_reading(until: Instant) -> Instant {
    let left = until.saturating_duration_since(Instant::now());
    until - left * 2 / 3
}

/// A slow command must leave time to read what became of it.
fn end_of_command(until: Instant) -> Instant {
    let left = until.saturating_duration_since(Instant::now());
    until - (left / 4).min(Duration::from_secs(5))
}

pub(crate) async fn act_and_observe(
    device: &dyn Device,
    kind: FencingKind,
    secrets: &Secrets,
    clock: &Clock,
    time: TimeGiven,
) -> Report {
    let report = timeout_at(time.until, act(device, kind, clock, time)).await;
    let report =
        report.unwrap_or_else(|_| Report::unknown("the time ran out before the device was read back"));
    clean(report, secrets)
}

async fn act(device: &dyn Device, kind: FencingKind, clock: &Clock, time: TimeGiven) -> Report {
    let mut before = None;
    if kind.releases() {
        let after_ms = time.ms_before(Instant::now());
        match read(device, end_of_first_reading(time.until)).await {
            // A device that already shows the released state needs no command.
            Reading::State(state, detail) if state == kind.wanted_state() => {
                let seen = observation(state, detail, after_ms, clock);
                return told_before(confirmed(seen), Some(state));
            }
            Reading::State(state, _) => before = Some(state),
            Reading::Refused(detail) => return Report::refused(detail),
            Reading::Unclear(_) => {}
        }
    }
    // A process that stood still meanwhile finds everything else ready: no engine waits any more for what it would command now.
    if time.left().is_zero() {
        return told_before(
            Report::unknown("the time ran out before the device was commanded"),
            before,
        );
    }
    let report = match command(device, kind, end_of_command(time.until)).await {
        Answer::Refused(detail) => Report::refused(detail),
        Answer::Sent(answer) => watch(device, kind, &answer, clock, time).await,
    };
    told_before(report, before)
}

/// With what the device had shown before its command.
fn told_before(report: Report, before: Option<ObservedState>) -> Report {
    let observation = report.observation.map(|seen| Observation { before, ..seen });
    Report {
        observation,
        ..report
    }
}

/// A reading as a span of its own. What the device says in words stays out of it.
async fn read(device: &dyn Device, until: Instant) -> Reading {
    let span = tracing::error_span!("read", state = Empty, outcome = Empty);
    let reading = device.read(until).instrument(span.clone()).await;
    match &reading {
        Reading::State(state, _) => span.record("state", state.as_str()),
        Reading::Unclear(_) => span.record("outcome", "unknown"),
        Reading::Refused(_) => span.record("outcome", "refused"),
    };
    reading
}

/// Gives a command, within a span of its own.
async fn command(device: &dyn Device, kind: FencingKind, until: Instant) -> Answer {
    let span = tracing::error_span!("command", task = %kind, outcome = Empty);
    let answer = device.command(kind, until).instrument(span.clone()).await;
    match &answer {
        Answer::Sent(_) => span.record("outcome", "sent"),
        Answer::Refused(_) => span.record("outcome", "refused"),
    };
    answer
}

/// Reads until the wanted state is shown or no time is left for another reading.
async fn watch(
    device: &dyn Device,
    kind: FencingKind,
    answer: &str,
    clock: &Clock,
    time: TimeGiven,
) -> Report {
    let wanted = kind.wanted_state();
    let mut seen = None;
    let mut trouble;
    loop {
        let after_ms = time.ms_before(Instant::now());
        match read(device, time.until).await {
            Reading::State(state, detail) => {
                let observed = observation(state, detail, after_ms, clock);
                if state == wanted {
                    return confirmed(observed);
                }
                seen = Some(observed);
                trouble = None;
            }
            Reading::Unclear(detail) | Reading::Refused(detail) => trouble = Some(detail),
        }
        if time.left() <= device.pause() + SHORTEST_READING {
            break;
        }
        sleep(device.pause()).await;
    }
    let mut detail = format!("commanded {kind}, but it");
    if let Some(seen) = &seen {
        detail += &format!(" last read as {}", seen.state.as_str());
    }
    if let Some(trouble) = trouble {
        let and = if seen.is_some() { " and then" } else { "" };
        detail += &format!("{and} could not be read: {trouble}");
    }
    detail += &format!("; the device answered: {answer}");
    Report {
        outcome: Outcome::Unknown,
        observation: seen,
        finding: None,
        detail,
    }
}

pub(crate) async fn observe(
    device: &dyn Device,
    secrets: &Secrets,
    clock: &Clock,
    until: Instant,
) -> Result<Observation, WorkerError> {
    let reading = timeout_at(until, read(device, until)).await;
    let late = |_| Reading::Unclear("the device did not answer in time".to_owned());
    observed(reading.unwrap_or_else(late), secrets, clock)
}

/// A reading that no command came before.
pub(crate) fn observed(
    reading: Reading,
    secrets: &Secrets,
    clock: &Clock,
) -> Result<Observation, WorkerError> {
    match reading {
        Reading::State(state, detail) => Ok(observation(state, cut(&secrets.mask(&detail)), 0, clock)),
        Reading::Unclear(detail) => Err(clean_error(WorkerError::unclear(detail), secrets)),
        Reading::Refused(detail) => Err(clean_error(WorkerError::refused(detail), secrets)),
    }
}

fn confirmed(observation: Observation) -> Report {
    Report {
        outcome: Outcome::Confirmed,
        observation: Some(observation),
        finding: None,
        detail: String::new(),
    }
}

fn observation(state: ObservedState, detail: String, after_ms: u64, clock: &Clock) -> Observation {
    Observation {
        state,
        detail,
        observed_at: clock(),
        after_ms,
        before: None,
        proves: true,
    }
}

/// Takes secrets out of all texts, and cuts them to length.
pub(crate) fn clean(report: Report, secrets: &Secrets) -> Report {
    let mask = |text: &str| cut(&secrets.mask(text));
    Report {
        outcome: report.outcome,
        finding: report.finding,
        detail: mask(&report.detail),
        observation: report.observation.map(|o| Observation {
            detail: mask(&o.detail),
            ..o
        }),
    }
}

/// Masks an error.
pub(crate) fn clean_error(error: WorkerError, secrets: &Secrets) -> WorkerError {
    let mask = |text: &str| cut(&secrets.mask(text));
    match error {
        WorkerError::Refused { detail } => WorkerError::refused(mask(&detail)),
        WorkerError::Unclear { detail } => WorkerError::unclear(mask(&detail)),
        WorkerError::Secret { .. } | WorkerError::Configuration(_) | WorkerError::Bus(_) => error,
    }
}

#[cfg(test)]
#[path = "act_tests.rs"]
mod tests;
