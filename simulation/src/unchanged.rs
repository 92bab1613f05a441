//! Times in which nothing changes. A fence that a safeguard holds is looked at every few seconds, and as long as nothing changes each look finds what the one before it has found.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use ringfence_core::{HostId, HostState, OperationStatus, Safeguard, Timestamp};

use crate::Site;

/// After so much time without a change, what counts for a short time counts no more: permits of a minute and of a span, and what others have said.
const LONG: TimeDelta = TimeDelta::seconds(90);
/// What is held, or could not begin, is looked at again within so much time.
const LOOKED_AT_WITHIN: TimeDelta = TimeDelta::seconds(5);

/// What of a host shows that something has changed: the number of its last event, and how its operation stands.
type Mark = (u64, Option<(OperationStatus, String)>);

/// Since when nothing has changed.
pub(crate) struct Unchanged {
    changed_at: Timestamp,
    marks: BTreeMap<HostId, Mark>,
}

impl Unchanged {
    pub fn new(now: Timestamp) -> Self {
        Self {
            changed_at: now,
            marks: BTreeMap::new(),
        }
    }

    /// Something was sent to a worker, or happened from outside.
    pub fn ends(&mut self, now: Timestamp) {
        self.changed_at = now;
    }

    /// A host was looked at.
    pub fn note(&mut self, state: &HostState, now: Timestamp) {
        let live = state.operation.as_ref().filter(|live| live.status.is_live());
        let mark = (
            state.host.event_sequence,
            live.map(|live| (live.status, live.detail.clone())),
        );
        if self.marks.get(&state.host.id) != Some(&mark) {
            self.changed_at = now;
            self.marks.insert(state.host.id, mark);
        }
    }

    /// Until after when only what waits for longer than a look changes anything; `None` where a look may find something.
    pub fn lasts_beyond(&self, states: &BTreeMap<HostId, HostState>, now: Timestamp) -> Option<Timestamp> {
        // The quiet time of a segment, or of a source, ends by itself, at a moment that only its safeguard knows.
        let is_quiet_time = |safeguard| matches!(safeguard, Safeguard::CoolDown | Safeguard::Sight);
        let cools_down = |state: &HostState| {
            let held = state.operation.as_ref().and_then(|live| live.held());
            held.is_some_and(|held| held.by.iter().any(|ruling| is_quiet_time(ruling.safeguard)))
        };
        let is_long = now - self.changed_at >= LONG;
        (is_long && !states.values().any(cools_down)).then(|| now + LOOKED_AT_WITHIN)
    }
}

/// When a suspension ends next.
pub(crate) fn next_resume(site: &Site, now: Timestamp) -> Option<Timestamp> {
    let copy = &site.copy;
    let hosts = copy.hosts.iter().filter_map(|host| host.suspension.as_ref());
    let all = hosts.chain(copy.suspensions.values()).chain(&copy.everything);
    all.filter_map(|suspension| suspension.until)
        .filter(|until| *until > now)
        .min()
}
