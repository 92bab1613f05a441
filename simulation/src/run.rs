//! One simulation, from moment to moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::TimeDelta;
use ringfence_core::{Catalogue, ConditionStatus, FailureState, HostId, HostState, Timestamp};
use ringfence_db::{EventRow, EventTest};
use ringfence_engine::Context;
use serde_json::json;

use crate::observers::{self, Observers, is_waited_for};
use crate::outcome::fate;
use crate::periods::Periods;
use crate::stage::Stage;
use crate::workers::Workers;
use crate::{
    Assumptions, Entry, Happening, HostOutcome, Outcome, Period, Seen, SimulationError, Site, Story, What,
};

/// The most steps of one simulation.
const MAX_STEPS: u64 = 5_000_000;
/// The most steps at one moment.
const MAX_AT_ONE_MOMENT: u64 = 200_000;
/// Events that are read at once.
const PAGE: u32 = 1_000;
/// The events of an operation that safeguards hold; also told where they change while it is held.
const HELD: &str = "operation.held";

/// Simulates a story on a copy of the state. Two simulations of one story on one copy come to one outcome, apart from ids.
///
/// # Errors
/// The copy cannot be made, or the engine cannot decide.
pub async fn simulate(
    site: &Site,
    story: &Story,
    assumptions: Assumptions,
    drivers: Catalogue,
) -> Result<Outcome, SimulationError> {
    let assumptions = Arc::new(assumptions);
    let first = first_moment(site, story);
    let site = &known_since(first, site);
    let stage = Stage::set(first, drivers, Arc::clone(&assumptions)).await?;
    let mut run = Run {
        site,
        story,
        stage: &stage,
        observers: Observers::default(),
        workers: Workers::new(assumptions),
        states: BTreeMap::new(),
        periods: BTreeMap::new(),
        changed_holds: Vec::new(),
        silent_at: BTreeMap::new(),
        first_event: 0,
    };
    let outcome = run.follow().await;
    drop(run);
    stage.strike().await;
    outcome
}

/// What is known of the time before is told at its own moments.
fn first_moment(site: &Site, story: &Story) -> Timestamp {
    let since = site.seen.values().flat_map(|seen| {
        let conditions = seen.conditions.iter().map(|(_, _, condition)| condition.since);
        conditions.chain(seen.since)
    });
    let first = since.chain([story.begins_at]).min();
    first.unwrap_or(story.begins_at).min(story.begins_at) - TimeDelta::seconds(60)
}

/// What is known from before the story.
enum Past<'a> {
    Seen(&'a Seen),
    /// The source, the name and the status of a condition.
    Condition(&'a str, &'a str, ConditionStatus),
}

/// What is known from before the story, in its order.
fn past(site: &Site, first: Timestamp, begins_at: Timestamp) -> Vec<(Timestamp, HostId, Past<'_>)> {
    let mut past = Vec::new();
    for host in &site.copy.hosts {
        let Some(seen) = site.seen.get(&host.id) else {
            continue;
        };
        let within = |at: Timestamp| at.clamp(first, begins_at);
        // A moment that lies ahead is none of which a host could know: it is FENCED when it is seen first.
        let fenced_at = host.fence.as_ref().map(|fence| fence.at);
        let since = seen.since.max(fenced_at).unwrap_or(first);
        past.push((within(since), host.id, Past::Seen(seen)));
        for (source, name, condition) in &seen.conditions {
            let told = Past::Condition(source, name, condition.status);
            past.push((within(condition.since), host.id, told));
        }
    }
    past.sort_by_key(|(at, host_id, _)| (*at, *host_id));
    past
}

/// Every host was there when it begins.
fn known_since(first: Timestamp, site: &Site) -> Site {
    let mut site = site.clone();
    for host in &mut site.copy.hosts {
        host.created_at = host.created_at.min(first);
        host.updated_at = host.created_at;
    }
    site
}

struct Run<'a> {
    site: &'a Site,
    story: &'a Story,
    stage: &'a Stage,
    observers: Observers,
    workers: Workers,
    /// As each host was last looked at.
    states: BTreeMap<HostId, HostState>,
    periods: BTreeMap<HostId, Periods>,
    changed_holds: Vec<(Timestamp, HostId, Period)>,
    silent_at: BTreeMap<HostId, Timestamp>,
    /// The events of the story come after the one of this number.
    first_event: u64,
}

impl Run<'_> {
    async fn follow(&mut self) -> Result<Outcome, SimulationError> {
        self.prepare().await?;
        let mut happenings: Vec<&Happening> = self.story.happenings.iter().collect();
        happenings.sort_by_key(|happening| happening.after);
        let mut happenings = happenings.into_iter().peekable();
        let begins_at = self.story.begins_at;
        let ends_at = begins_at + self.story.lasts;
        let (mut steps, mut at_this_moment) = (0_u64, 0_u64);
        loop {
            let now = self.stage.now();
            let happens_at = happenings.peek().map(|happening| begins_at + happening.after);
            let due_at = self.stage.engine.next_due().await;
            let due_at = due_at.map_err(SimulationError::step("the next moment is looked for"))?;
            let repeats_at = self.observers.next(|id| self.is_waited_for(id));
            let moments = [happens_at, due_at, repeats_at, self.workers.next()];
            let next = moments.into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= ends_at) else {
                break;
            };
            at_this_moment = if next > now { 0 } else { at_this_moment + 1 };
            steps += 1;
            if steps > MAX_STEPS || at_this_moment > MAX_AT_ONE_MOMENT {
                let at = now.to_rfc3339();
                return Err(SimulationError::Endless { steps, at });
            }
            self.stage.pass_until(next);
            let now = self.stage.now();
            let mut touched = BTreeSet::new();
            while let Some(happening) = happenings.next_if(|happening| begins_at + happening.after <= now) {
                self.happen(happening, now).await?;
                touched.insert(happening.host_id);
            }
            touched.extend(self.repeat(now).await?);
            while let Some(host_id) = self.workers.go_on(&self.stage.engine, now).await? {
                touched.insert(host_id);
            }
            let looked_at = self.stage.engine.look_at_due().await;
            for state in looked_at.map_err(SimulationError::step("the hosts that are due are looked at"))? {
                touched.insert(state.host.id);
            }
            self.take_sent(now).await?;
            self.note(touched, now).await?;
        }
        self.stage.pass_until(ends_at);
        self.outcome(ends_at).await
    }

    /// What was so before the story begins.
    async fn prepare(&mut self) -> Result<(), SimulationError> {
        let engine = &self.stage.engine;
        let copied = engine.put_copy(&self.site.copy).await;
        copied.map_err(SimulationError::step("the state is copied"))?;
        for (at, host_id, past) in past(self.site, self.stage.now(), self.story.begins_at) {
            self.stage.pass_until(at);
            let now = self.stage.now();
            match past {
                Past::Seen(seen) => {
                    self.observers.watch(host_id, seen, now);
                    if seen.state != FailureState::Unknown {
                        self.observers.see(engine, host_id, seen.state, now).await?;
                    }
                }
                Past::Condition(source, name, status) => {
                    observers::condition(engine, host_id, Some(source), name, status).await?;
                }
            }
        }
        self.stage.pass_until(self.story.begins_at);
        let put = engine.put_policies(&self.site.copy).await;
        put.map_err(SimulationError::step("the policies are put in force"))?;
        let last = ringfence_db::last_sequence(&mut engine.db().reader()).await?;
        self.first_event = last;
        for host_id in &self.site.being_fenced {
            self.ask_for_fence(*host_id, "its fence was under way, and begins anew in the copy")
                .await?;
        }
        let all = self.site.copy.hosts.iter().map(|host| host.id).collect();
        self.note(all, self.stage.now()).await?;
        self.take_sent(self.stage.now()).await
    }

    async fn happen(&mut self, happening: &Happening, now: Timestamp) -> Result<(), SimulationError> {
        let engine = &self.stage.engine;
        let host_id = happening.host_id;
        let host = host_id.to_string();
        match &happening.what {
            What::Seen(state) => {
                self.observers.see(engine, host_id, *state, now).await?;
                if *state == FailureState::Unreachable {
                    self.silent_at.entry(host_id).or_insert(now);
                }
            }
            What::Condition { source, name, status } => {
                observers::condition(engine, host_id, source.as_deref(), name, *status).await?;
            }
            What::Rejoin => {
                let by = Context::own("operator");
                // The rules may refuse it, which is a part of the story.
                drop(
                    engine
                        .rejoin(&host, "asked for in the simulation", false, &by)
                        .await,
                );
            }
            What::Fence => self.ask_for_fence(host_id, "asked for in the simulation").await?,
        }
        let looked = engine.look_after_report(&host).await;
        looked.map_err(SimulationError::step(format!("host {host} is looked at")))
    }

    async fn ask_for_fence(&self, host_id: HostId, reason: &str) -> Result<(), SimulationError> {
        let by = Context::own("operator");
        drop(self.stage.engine.fence(&host_id.to_string(), reason, &by).await);
        Ok(())
    }

    async fn repeat(&mut self, now: Timestamp) -> Result<Vec<HostId>, SimulationError> {
        let states = &self.states;
        let waits = |id: HostId| states.get(&id).is_some_and(is_waited_for);
        self.observers.repeat(&self.stage.engine, waits, now).await
    }

    fn is_waited_for(&self, host_id: HostId) -> bool {
        self.states.get(&host_id).is_some_and(is_waited_for)
    }

    async fn take_sent(&mut self, now: Timestamp) -> Result<(), SimulationError> {
        let sent = self.stage.engine.take_sent().await;
        for task in sent.map_err(SimulationError::step("the tasks that were sent are taken"))? {
            self.workers.take(task, now);
        }
        Ok(())
    }

    /// Looks at hosts that something may have happened to.
    async fn note(&mut self, hosts: BTreeSet<HostId>, now: Timestamp) -> Result<(), SimulationError> {
        for host_id in hosts {
            let state = self.stage.engine.look_at(&host_id.to_string()).await;
            let state = state.map_err(SimulationError::step(format!("host {host_id} is read")))?;
            if let Some(changed) = self.periods.entry(host_id).or_default().note(&state, now) {
                self.changed_holds.push((now, host_id, changed));
            }
            self.states.insert(host_id, state);
        }
        Ok(())
    }

    async fn outcome(&mut self, ends_at: Timestamp) -> Result<Outcome, SimulationError> {
        let events = self.events().await?;
        let mut fenced_at: BTreeMap<String, Vec<Timestamp>> = BTreeMap::new();
        let mut timeline = Vec::with_capacity(events.len());
        for EventRow { event, .. } in events {
            let Some(host) = event.host else { continue };
            if event.kind == ringfence_core::EventKind::HostFenced {
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
            if period.waits_for == crate::Wait::Held {
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
