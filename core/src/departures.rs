//! Hosts that their platform no longer names, and which of them may be removed without being asked.
//!
//! That a host is not named proves nothing: its machine may run and write. So one that is FENCED, or of which anything is under way, stays.

use std::collections::BTreeSet;

use chrono::TimeDelta;

use crate::{DEFAULT_ZONE, FailureState, HostId, HostState, Refusal, Timestamp, may_remove};

/// A host on record, as far as it matters whether it has left its platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident<'a> {
    /// Its id.
    pub id: HostId,
    /// What its platform calls it.
    pub known_as: &'a str,
    /// Whether it was added by itself, because its platform named it.
    pub is_adopted: bool,
    /// Since when its platform has not named it, as it is on record.
    pub left_at: Option<Timestamp>,
}

/// What a complete list of a platform's hosts says of those on record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Departures {
    /// Those that the platform does not name any more, from now on.
    pub left: Vec<HostId>,
    /// Those that it names again.
    pub back: Vec<HostId>,
    /// Those that may be removed, if nothing else stands against it; those that left first come first.
    pub due: Vec<HostId>,
}

/// Compares a complete list of a platform's hosts with those on record. A list that names no host at all says nothing.
///
/// A host is due when it was added by itself, and its platform has not named it for `remove_after`; no host is without that. By a clock that was
/// set, the time counts from then on.
#[must_use]
pub fn departures(
    named: &BTreeSet<&str>,
    on_record: &[Resident<'_>],
    remove_after: Option<TimeDelta>,
    now: Timestamp,
    clock_set_at: Option<Timestamp>,
) -> Departures {
    let mut found = Departures::default();
    if named.is_empty() {
        return found;
    }
    let mut due = Vec::new();
    for host in on_record {
        match (named.contains(host.known_as), host.left_at) {
            (true, Some(_)) => found.back.push(host.id),
            (true, None) => {}
            (false, None) => found.left.push(host.id),
            (false, Some(left_at)) => {
                let away = now - clock_set_at.map_or(left_at, |set_at| set_at.max(left_at));
                if host.is_adopted && remove_after.is_some_and(|after| away >= after) {
                    due.push((left_at, host.id));
                }
            }
        }
    }
    due.sort();
    found.due = due.into_iter().map(|(_, id)| id).collect();
    found
}

/// Whether a host that its platform does not name any more may be removed without being asked: nothing is known of it that would be lost, and
/// nothing may be acting on it.
///
/// # Errors
/// What keeps it: that a person could not remove it either, that a source sees how it is, an attempt that may be acting, or what a person has
/// given to it.
pub fn may_remove_departed(state: &HostState, now: Timestamp) -> Result<(), Refusal> {
    may_remove(state, now)?;
    let host = &state.host;
    let why = if host.sources.seen(now).state != FailureState::Unknown {
        "seen by another source"
    } else if !host.parameters.is_empty() || host.zone != DEFAULT_ZONE {
        "one that a person has given parameters or a zone to, which its platform does not have"
    } else {
        return Ok(());
    };
    Err(Refusal::HostState(why))
}
