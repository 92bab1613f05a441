//! What a simulation has come to, from the events and the hosts of its database.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{EventKind, HostId, HostState, Timestamp};
use ringfence_db::{EventRow, EventTest};
use serde_json::json;

use crate::outcome::end_of;
use crate::run::Run;
use crate::{Entry, HostOutcome, Outcome, SimulationError, Wait};

/// Events that are read at once.
const PAGE: u32 = 1_000;

impl Run<'_> {
    pub(crate) async fn outcome(&self, ends_at: Timestamp) -> Result<Outcome, SimulationError> {
        let events = self.events().await?;
        let fences = events
            .iter()
            .filter(|row| row.event.kind == EventKind::HostFenced);
        let mut fenced_at: BTreeMap<HostId, Vec<Timestamp>> = BTreeMap::new();
        for EventRow { event, .. } in fences {
            if let Some(host) = &event.host {
                fenced_at.entry(host.id).or_default().push(event.occurred_at);
            }
        }
        let touched = events.iter().filter_map(|row| Some(row.event.host.as_ref()?.id));
        let mut touched: BTreeSet<HostId> = touched.collect();
        touched.extend(
            self.periods
                .iter()
                .filter(|(_, of)| !of.0.is_empty())
                .map(|(id, _)| *id),
        );
        let states = touched.iter().filter_map(|host_id| self.states.get(host_id));
        let mut hosts: Vec<HostOutcome> = states
            .map(|state| {
                self.host(
                    state,
                    fenced_at.remove(&state.host.id).unwrap_or_default(),
                    ends_at,
                )
            })
            .collect();
        hosts.sort_by(|a, b| a.host.cmp(&b.host));
        Ok(Outcome {
            began_at: self.story.begins_at,
            ended_at: ends_at,
            hosts,
            timeline: self.timeline(events),
        })
    }

    fn host(&self, state: &HostState, fenced_at: Vec<Timestamp>, ends_at: Timestamp) -> HostOutcome {
        let host = &state.host;
        let mut segments = self.site.copy.segments.iter();
        let segment = segments.find(|segment| segment.id == host.segment_id);
        let periods = self.periods.get(&host.id);
        HostOutcome {
            host: host.name.clone(),
            segment: segment.map(|segment| segment.name.clone()).unwrap_or_default(),
            silent_at: self.silent_at.get(&host.id).copied(),
            fenced_at,
            waits: periods.map(|periods| periods.0.clone()).unwrap_or_default(),
            end: end_of(state, ends_at),
        }
    }

    /// The events, and what has come to hold an operation that was held before: that has no event of its own.
    fn timeline(&self, events: Vec<EventRow>) -> Vec<Entry> {
        let told = events.into_iter().filter_map(|EventRow { event, .. }| {
            Some(Entry {
                at: event.occurred_at,
                host: event.host?.name,
                kind: event.kind.as_str(),
                data: event.data,
            })
        });
        let changed = self.changed_holds.iter().filter_map(|(at, host_id, period)| {
            let state = self.states.get(host_id)?;
            (period.waits_for == Wait::Held).then(|| Entry {
                at: *at,
                host: state.host.name.clone(),
                kind: EventKind::OperationHeld.as_str(),
                data: json!({ "detail": period.detail }),
            })
        });
        let mut timeline: Vec<Entry> = told.chain(changed).collect();
        timeline.sort_by_key(|entry| entry.at);
        timeline
    }

    async fn events(&self) -> Result<Vec<EventRow>, SimulationError> {
        let mut all: Vec<EventRow> = Vec::new();
        loop {
            let test = EventTest {
                after: all.last().map_or(self.first_event, |last| last.sequence),
                ..EventTest::default()
            };
            let mut reader = self.own.engine.db().reader();
            let page = ringfence_db::events_page(&mut reader, test, false, PAGE).await?;
            let is_last = page.len() < PAGE as usize;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }
}
