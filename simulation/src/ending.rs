//! What a simulation has come to, from the events and the hosts of its database.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{EventKind, Timestamp};
use ringfence_db::{EventRow, EventTest};
use serde_json::json;

use crate::outcome::fate;
use crate::run::Run;
use crate::{Entry, HostOutcome, Outcome, SimulationError, Wait};

/// Events that are read at once.
const PAGE: u32 = 1_000;
/// The event of an operation that safeguards hold; also told where they change while it is held.
const HELD: &str = "operation.held";

impl Run<'_> {
    pub(crate) async fn outcome(&mut self, ends_at: Timestamp) -> Result<Outcome, SimulationError> {
        let events = self.events().await?;
        let mut fenced_at: BTreeMap<String, Vec<Timestamp>> = BTreeMap::new();
        let mut timeline = Vec::with_capacity(events.len());
        for EventRow { event, .. } in events {
            let Some(host) = event.host else { continue };
            if event.kind == EventKind::HostFenced {
                fenced_at
                    .entry(host.name.clone())
                    .or_default()
                    .push(event.occurred_at);
            }
            timeline.push(Entry {
                at: event.occurred_at,
                host: host.name,
                kind: event.kind.as_str(),
                data: event.data,
            });
        }
        for (at, host_id, period) in std::mem::take(&mut self.changed_holds) {
            let Some(state) = self.states.get(&host_id) else {
                continue;
            };
            // A wait for an operator has an event of its own.
            if period.waits_for == Wait::Held {
                timeline.push(Entry {
                    at,
                    host: state.host.name.clone(),
                    kind: HELD,
                    data: json!({ "detail": period.detail }),
                });
            }
        }
        timeline.sort_by_key(|entry| entry.at);
        let named: BTreeSet<&str> = timeline.iter().map(|entry| entry.host.as_str()).collect();
        let segments: BTreeMap<_, _> = self
            .site
            .copy
            .segments
            .iter()
            .map(|segment| (segment.id, segment.name.as_str()))
            .collect();
        let mut hosts = Vec::new();
        for (host_id, state) in &self.states {
            let name = state.host.name.as_str();
            let waits = self
                .periods
                .get(host_id)
                .map(|periods| periods.0.clone())
                .unwrap_or_default();
            if !named.contains(name) && waits.is_empty() {
                continue;
            }
            hosts.push(HostOutcome {
                host: name.to_owned(),
                segment: segments
                    .get(&state.host.segment_id)
                    .copied()
                    .unwrap_or_default()
                    .to_owned(),
                silent_at: self.silent_at.get(host_id).copied(),
                fenced_at: fenced_at.remove(name).unwrap_or_default(),
                waits,
                end: fate(state, ends_at),
            });
        }
        hosts.sort_by(|a, b| a.host.cmp(&b.host));
        Ok(Outcome {
            began_at: self.story.begins_at,
            ended_at: ends_at,
            hosts,
            timeline,
        })
    }

    async fn events(&self) -> Result<Vec<EventRow>, SimulationError> {
        let mut all: Vec<EventRow> = Vec::new();
        loop {
            let test = EventTest {
                after: all.last().map_or(self.first_event, |last| last.sequence),
                ..EventTest::default()
            };
            let mut reader = self.stage.engine.db().reader();
            let page = ringfence_db::events_page(&mut reader, test, false, PAGE).await?;
            let is_last = page.len() < PAGE as usize;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }
}
