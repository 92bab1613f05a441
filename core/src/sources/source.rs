//! One source, and what it saw last.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use super::{Report, WATCHED_GAP_S};
use crate::guard::{Guard, on};
use crate::{Boots, FailureState, HEARD_S, Timestamp};

/// What is known of a source's lateness is forgotten by a millisecond in so many: its clock may have been set.
const LEARNT_PER_MS: i64 = 100;

/// What one source saw last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// What it said last.
    pub state: FailureState,
    /// When it saw that.
    pub observed_at: Timestamp,
    /// When the engine heard it.
    pub reported_at: Timestamp,
    /// Milliseconds by which its reports are late at least: its clock is behind, or its way is long. What it saw, it saw up to so much
    /// later than it says.
    pub late_ms: i64,
    /// By when its newest sign of life came, by the engine's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alive_by: Option<Timestamp>,
    /// Its newest sign of life of the host, as it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alive_at: Option<Timestamp>,
    /// When the engine last heard of a sign of life, however old that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alive_reported_at: Option<Timestamp>,
    /// Since when it has said UP without a break, by the engine's clock; `None` while it says something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_since: Option<Timestamp>,
    /// The silence that it reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<Silence>,
    /// The boots that it saw.
    pub boots: Boots,
}

/// A silence that a source reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// When the source first saw it.
    pub since: Timestamp,
    /// Since when its reports have come without a gap, by the engine's clock.
    pub watched_from: Timestamp,
    /// Whether the source says when it last had a sign of life: without that it does not tell whether it had one between two reports.
    pub is_dated: bool,
}

impl Source {
    /// The least by which its reports have been late, lately: a single late one says nothing about its clock.
    pub(super) fn lateness_ms(&self, observed_at: Timestamp, now: Timestamp) -> i64 {
        let late_ms = (now - observed_at).num_milliseconds().max(0);
        let forgotten_ms = (now - self.reported_at).num_milliseconds().max(0) / LEARNT_PER_MS;
        late_ms.min(self.late_ms + forgotten_ms)
    }

    /// One that has said nothing yet.
    pub(super) fn new(observed_at: Timestamp, now: Timestamp) -> Self {
        Self {
            state: FailureState::Unknown,
            observed_at,
            reported_at: now,
            late_ms: (now - observed_at).num_milliseconds().max(0),
            alive_by: None,
            alive_at: None,
            alive_reported_at: None,
            up_since: None,
            silence: None,
            boots: Boots::default(),
        }
    }

    /// A sign of life, perhaps a late one: silence begins anew after it.
    pub(super) fn heard(&mut self, alive_at: Timestamp, state: FailureState, now: Timestamp) {
        let is_new = Some(alive_at) > self.alive_at;
        self.alive_at = self.alive_at.max(Some(alive_at));
        if state == FailureState::Up {
            self.alive_reported_at = self.alive_reported_at.max(Some(now));
        }
        if let Some(silence) = &mut self.silence
            && (is_new || state == FailureState::Up)
        {
            silence.since = silence.since.max(alive_at);
        }
    }

    /// Since when it says UP without a break. One that was not heard of for some time may have lost the host meanwhile.
    pub(super) fn up_since_after(&self, report: &Report, now: Timestamp) -> Option<Timestamp> {
        let goes_on = now - self.reported_at <= TimeDelta::seconds(HEARD_S);
        let known = self.up_since.filter(|_| goes_on);
        (report.state == FailureState::Up).then(|| known.unwrap_or(now))
    }

    /// The silence that it reports now.
    pub(super) fn silence_after(&self, report: &Report, now: Timestamp) -> Option<Silence> {
        if report.state != FailureState::Unreachable {
            return None;
        }
        let gap = TimeDelta::seconds(i64::from(WATCHED_GAP_S));
        let is_watched = now - self.reported_at <= gap && report.observed_at - self.observed_at <= gap;
        let known = self.silence;
        let watched = known.filter(|_| is_watched || !on(Guard::GapBreaksSilence));
        // By its own clock the source tells how long ago it had its last sign of life.
        let silent_since = report.silent_since.or(report.last_seen_at);
        let silent_for = silent_since.map(|since| (report.observed_at - since).max(TimeDelta::zero()));
        let last_seen = silent_for
            .map(|silent_for| now - silent_for)
            .filter(|_| on(Guard::LastSeenBreaksSilence));
        let watched_from = watched.map_or(now, |silence| silence.watched_from);
        Some(Silence {
            since: known.map_or(report.observed_at, |silence| silence.since),
            watched_from: last_seen.map_or(watched_from, |last_seen| watched_from.max(last_seen)),
            is_dated: silent_since.is_some(),
        })
    }
}
