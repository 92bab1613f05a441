//! One simulation, from moment to moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::TimeDelta;
use ringfence_core::{Catalogue, FailureState, HostId, HostState, Timestamp};
use ringfence_engine::Context;

use crate::observers::{self, Observers, Repeated, repeated_every};
use crate::own_engine::OwnEngine;
use crate::past::{Past, first_moment, heard_every, known_since, past};
use crate::periods::Periods;
use crate::unchanged::{Unchanged, next_resume};
use crate::workers::Workers;
use crate::{Assumptions, Happening, Outcome, Period, SimulationError, Site, Story, What};

/// The most steps of one simulation.
const MAX_STEPS: u64 = 5_000_000;
/// The most steps at one moment.
const MAX_AT_ONE_MOMENT: u64 = 200_000;

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
    let own = OwnEngine::start(first, drivers, Arc::clone(&assumptions)).await?;
    let mut run = Run {
        site,
        story,
        own: &own,
        observers: Observers::default(),
        workers: Workers::new(assumptions),
        states: BTreeMap::new(),
        periods: BTreeMap::new(),
        changed_holds: Vec::new(),
        silent_at: BTreeMap::new(),
        repeated: Repeated::new(),
        heard_every: heard_every(site),
        unchanged: Unchanged::new(story.begins_at),
        steps: 0,
        at_this_moment: 0,
        first_event: 0,
    };
    let outcome = run.follow().await;
    drop(run);
    own.end().await;
    outcome
}

pub(crate) struct Run<'a> {
    pub site: &'a Site,
    pub story: &'a Story,
    pub own: &'a OwnEngine,
    observers: Observers,
    workers: Workers,
    /// As each host was last looked at.
    pub states: BTreeMap<HostId, HostState>,
    pub periods: BTreeMap<HostId, Periods>,
    pub changed_holds: Vec<(Timestamp, HostId, Period)>,
    pub silent_at: BTreeMap<HostId, Timestamp>,
    repeated: Repeated,
    /// How often it is said again that a host is UP, where that is counted.
    heard_every: Option<TimeDelta>,
    unchanged: Unchanged,
    steps: u64,
    at_this_moment: u64,
    /// The events of the story come after the one of this number.
    pub first_event: u64,
}

impl Run<'_> {
    async fn follow(&mut self) -> Result<Outcome, SimulationError> {
        self.prepare().await?;
        let mut happenings: Vec<&Happening> = self.story.happenings.iter().collect();
        happenings.sort_by_key(|happening| happening.after);
        let mut happenings = happenings.into_iter().peekable();
        let begins_at = self.story.begins_at;
        let ends_at = begins_at + self.story.lasts;
        loop {
            let happens_at = happenings.peek().map(|happening| begins_at + happening.after);
            let next = self.next(happens_at, ends_at).await?;
            let Some(next) = next.filter(|next| *next <= ends_at) else {
                break;
            };
            self.count_step(next)?;
            self.own.pass_until(next);
            let now = self.own.now();
            let mut touched = BTreeSet::new();
            while let Some(happening) = happenings.next_if(|happening| begins_at + happening.after <= now) {
                self.happen(happening, now).await?;
                touched.insert(happening.host_id);
                self.unchanged.ends(now);
            }
            touched.extend(self.repeat(now).await?);
            while let Some(host_id) = self.workers.go_on(&self.own.engine, now).await? {
                touched.insert(host_id);
            }
            let looked_at = self.own.engine.look_at_due().await;
            for state in looked_at.map_err(SimulationError::step("the hosts that are due are looked at"))? {
                touched.remove(&state.host.id);
                self.note(state, now);
            }
            self.take_sent(now).await?;
            self.look_at(touched, now).await?;
        }
        self.own.pass_until(ends_at);
        self.outcome(ends_at).await
    }

    /// When something is to be done next.
    async fn next(
        &self,
        happens_at: Option<Timestamp>,
        ends_at: Timestamp,
    ) -> Result<Option<Timestamp>, SimulationError> {
        let now = self.own.now();
        let repeats_at = self.observers.next(&self.repeated);
        let others = [happens_at, repeats_at, self.workers.next()]
            .into_iter()
            .flatten();
        let is_idle = self.workers.next().is_none();
        let unchanged = self.unchanged.lasts_beyond(&self.states, now).filter(|_| is_idle);
        let due_at = self.own.engine.next_due(unchanged).await;
        let due_at = due_at.map_err(SimulationError::step("the next moment is looked for"))?;
        let until = unchanged.map(|_| next_resume(self.site, now).unwrap_or(ends_at).min(ends_at));
        let next = others
            .chain(due_at)
            .chain(until.filter(|until| *until > now))
            .min();
        Ok(next)
    }

    fn count_step(&mut self, next: Timestamp) -> Result<(), SimulationError> {
        let now = self.own.now();
        self.at_this_moment = if next > now { 0 } else { self.at_this_moment + 1 };
        self.steps += 1;
        if self.steps > MAX_STEPS || self.at_this_moment > MAX_AT_ONE_MOMENT {
            return Err(SimulationError::Endless {
                steps: self.steps,
                at: now.to_rfc3339(),
            });
        }
        Ok(())
    }

    /// What was so before the story begins.
    async fn prepare(&mut self) -> Result<(), SimulationError> {
        let engine = &self.own.engine;
        let copied = engine.put_copy(&self.site.copy).await;
        copied.map_err(SimulationError::step("the state is copied"))?;
        for (at, host_id, past) in past(self.site, self.own.now(), self.story.begins_at) {
            self.own.pass_until(at);
            let now = self.own.now();
            match past {
                Past::Seen(seen) => {
                    self.observers.watch(engine, host_id, seen, now).await?;
                }
                Past::Still => self.observers.see_still(engine, host_id, now).await?,
                Past::Condition(source, name, status) => {
                    observers::condition(engine, host_id, Some(source), name, status).await?;
                }
            }
        }
        self.own.pass_until(self.story.begins_at);
        let put = engine.put_policies(&self.site.copy).await;
        put.map_err(SimulationError::step("the policies are put in force"))?;
        let last = ringfence_db::last_sequence(&mut engine.db().reader()).await?;
        self.first_event = last;
        for host_id in &self.site.being_fenced {
            self.ask_for_fence(*host_id, "its fence was under way, and begins anew in the copy")
                .await?;
        }
        let all = self.site.copy.hosts.iter().map(|host| host.id).collect();
        self.look_at(all, self.own.now()).await?;
        self.take_sent(self.own.now()).await
    }

    async fn happen(&mut self, happening: &Happening, now: Timestamp) -> Result<(), SimulationError> {
        let engine = &self.own.engine;
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
        drop(self.own.engine.fence(&host_id.to_string(), reason, &by).await);
        Ok(())
    }

    async fn repeat(&mut self, now: Timestamp) -> Result<Vec<HostId>, SimulationError> {
        self.observers.repeat(&self.own.engine, &self.repeated, now).await
    }

    async fn take_sent(&mut self, now: Timestamp) -> Result<(), SimulationError> {
        let sent = self.own.engine.take_sent().await;
        for task in sent.map_err(SimulationError::step("the tasks that were sent are taken"))? {
            self.unchanged.ends(now);
            self.workers.take(task, now);
        }
        Ok(())
    }

    /// Looks at hosts that something may have happened to.
    async fn look_at(&mut self, hosts: BTreeSet<HostId>, now: Timestamp) -> Result<(), SimulationError> {
        for host_id in hosts {
            let state = self.own.engine.look_at(&host_id.to_string()).await;
            let state = state.map_err(SimulationError::step(format!("host {host_id} is read")))?;
            self.note(state, now);
        }
        Ok(())
    }

    fn note(&mut self, state: HostState, now: Timestamp) {
        let host_id = state.host.id;
        self.unchanged.note(&state, now);
        match repeated_every(&state, self.heard_every) {
            Some(every) => self.repeated.insert(host_id, every),
            None => self.repeated.remove(&host_id),
        };
        if let Some(changed) = self.periods.entry(host_id).or_default().note(&state, now) {
            self.changed_holds.push((now, host_id, changed));
        }
        self.states.insert(host_id, state);
    }
}
