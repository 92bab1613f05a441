//! Suspensions: for a time, nothing begins by itself on a host, and what was asked for before stands still.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::{HostState, Problem, Ruling, Safeguard, Timestamp, Verdict, words};

/// The longest suspension that an operator may ask for, in days.
pub const MAX_SUSPENSION_DAYS: i64 = 30;
/// The longest suspension with an end that an admin may ask for, in days.
pub const MAX_ADMIN_SUSPENSION_DAYS: i64 = 366;

/// What is suspended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum SuspensionScope {
    /// One host.
    Host,
    /// The hosts of one segment.
    Segment,
    /// All hosts.
    Everything,
}

words!(SuspensionScope);

/// One suspension.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspension {
    /// Since when, which tells it from others: what a person asks for after that is not held by it.
    pub since: Timestamp,
    /// When it ends by itself; `None` if a person has to end it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Who asked for it.
    pub by: String,
    /// Why.
    pub reason: String,
}

impl Suspension {
    /// Whether it holds at `now`.
    #[must_use]
    pub fn is_in_force(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| until > now)
    }

    /// What it says of a fence that begins by itself, and of what was asked for before.
    #[must_use]
    pub fn ruling(&self, scope: SuspensionScope) -> Ruling {
        let what = match scope {
            SuspensionScope::Host => "the host is",
            SuspensionScope::Segment => "the host's segment is",
            SuspensionScope::Everything => "all hosts are",
        };
        let (end, release) = match self.until {
            Some(until) => {
                let until = until.format("%FT%TZ");
                (format!("until {until}"), format!("{until}, or a resume"))
            }
            None => ("without an end".to_owned(), "a resume".to_owned()),
        };
        Ruling {
            safeguard: Safeguard::Suspension,
            verdict: Verdict::Hold,
            reason: format!("{what} suspended {end} by {}: {}", self.by, self.reason),
            release: Some(release),
        }
    }
}

/// The suspensions that a host shares with others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedSuspensions {
    /// That of its segment.
    pub segment: Option<Suspension>,
    /// That of all hosts.
    pub everything: Option<Suspension>,
}

impl HostState {
    /// The suspensions of the host that are in force, its own first.
    pub fn suspensions(&self, now: Timestamp) -> impl Iterator<Item = (SuspensionScope, &Suspension)> {
        let all = [
            (SuspensionScope::Host, &self.host.suspension),
            (SuspensionScope::Segment, &self.shared.segment),
            (SuspensionScope::Everything, &self.shared.everything),
        ];
        all.into_iter()
            .filter_map(|(scope, suspension)| Some((scope, suspension.as_ref()?)))
            .filter(move |(_, suspension)| suspension.is_in_force(now))
    }
}

/// What is wrong with the end of a suspension that is asked for at `now`.
pub fn validate_suspension_end(
    until: Option<Timestamp>,
    is_admin: bool,
    now: Timestamp,
) -> Result<(), Problem> {
    let days = if is_admin {
        MAX_ADMIN_SUSPENSION_DAYS
    } else {
        MAX_SUSPENSION_DAYS
    };
    let why = match until {
        None if is_admin => return Ok(()),
        None => format!(
            "is missing; only an admin can suspend without an end, and an end within {days} days is allowed"
        ),
        Some(until) if until <= now => format!("is {}, which is not in the future", until.format("%FT%TZ")),
        Some(until) if until > now + TimeDelta::days(days) => format!(
            "is {}; an end within {days} days is allowed{}",
            until.format("%FT%TZ"),
            if is_admin {
                ""
            } else {
                ", and a later one to admins"
            }
        ),
        Some(_) => return Ok(()),
    };
    Err(Problem::new("until", why))
}
