//! Those who watch the hosts of a simulation.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use ringfence_core::{
    Boot, ConditionStatus, FailureState, HostId, HostState, Report, ReportedCondition, Timestamp,
};
use ringfence_engine::{Context, Engine};

use crate::{Seen, SimulationError};

/// The source of a host that has none, and the source of conditions.
const OWN_SOURCE: &str = "simulation";
/// Between two reports of what has not changed. Silence counts while it is watched: from report to report, with a bounded gap.
const REPEATED_EVERY: TimeDelta = TimeDelta::seconds(20);
/// A host that is seen silent was seen alive this long before.
const ALIVE_BEFORE: TimeDelta = TimeDelta::seconds(1);

/// Hosts of which something has to be said again and again, and how often.
pub(crate) type Repeated = BTreeMap<HostId, TimeDelta>;

/// How one host is seen.
struct Watched {
    sources: Vec<String>,
    state: FailureState,
    silent_since: Option<Timestamp>,
    boot: Option<Boot>,
    reported_at: Timestamp,
}

/// All observers.
#[derive(Default)]
pub(crate) struct Observers {
    by_host: BTreeMap<HostId, Watched>,
    boots: u64,
}

impl Observers {
    /// They begin to watch a host, and report how they see it.
    pub async fn watch(
        &mut self,
        engine: &Engine,
        host_id: HostId,
        seen: &Seen,
        now: Timestamp,
    ) -> Result<(), SimulationError> {
        let own = || vec![OWN_SOURCE.to_owned()];
        let sources = Some(seen.sources.clone()).filter(|sources| !sources.is_empty());
        let silent_since = seen.since.unwrap_or(now).min(now);
        let mut watched = Watched {
            sources: sources.unwrap_or_else(own),
            state: seen.state,
            silent_since: (seen.state == FailureState::Unreachable).then_some(silent_since),
            boot: None,
            reported_at: now,
        };
        if seen.state == FailureState::Up && !seen.needs_boot {
            watched.boot = Some(self.new_boot(now));
        }
        if seen.state != FailureState::Unknown {
            watched.report(engine, host_id, now).await?;
        }
        self.by_host.insert(host_id, watched);
        Ok(())
    }

    fn new_boot(&mut self, now: Timestamp) -> Boot {
        self.boots += 1;
        Boot {
            id: Some(format!("simulated-{}", self.boots)),
            booted_at: Some(now),
        }
    }

    /// All who watch the host see it so from now on.
    pub async fn see(
        &mut self,
        engine: &Engine,
        host_id: HostId,
        state: FailureState,
        now: Timestamp,
    ) -> Result<(), SimulationError> {
        let boot = self.new_boot(now);
        let Some(watched) = self.by_host.get_mut(&host_id) else {
            return Ok(());
        };
        if watched.state != FailureState::Up && state == FailureState::Up {
            watched.boot = Some(boot);
        }
        if watched.state != state {
            watched.silent_since = (state == FailureState::Unreachable).then_some(now);
        }
        watched.state = state;
        watched.report(engine, host_id, now).await
    }

    /// When something is to be said again of these hosts.
    pub fn next(&self, repeated: &Repeated) -> Option<Timestamp> {
        let watched = repeated
            .iter()
            .filter_map(|(id, every)| Some((self.by_host.get(id)?, every)));
        watched.map(|(watched, every)| watched.reported_at + *every).min()
    }

    /// Says it again; the hosts that this was about.
    pub async fn repeat(
        &mut self,
        engine: &Engine,
        repeated: &Repeated,
        now: Timestamp,
    ) -> Result<Vec<HostId>, SimulationError> {
        let mut told = Vec::new();
        for (host_id, every) in repeated {
            if let Some(watched) = self.by_host.get_mut(host_id)
                && watched.reported_at + *every <= now
            {
                watched.report(engine, *host_id, now).await?;
                told.push(*host_id);
            }
        }
        Ok(told)
    }

    /// A host is seen as before.
    pub async fn see_still(
        &mut self,
        engine: &Engine,
        host_id: HostId,
        now: Timestamp,
    ) -> Result<(), SimulationError> {
        match self.by_host.get_mut(&host_id) {
            Some(watched) => watched.report(engine, host_id, now).await,
            None => Ok(()),
        }
    }
}

impl Watched {
    async fn report(
        &mut self,
        engine: &Engine,
        host_id: HostId,
        now: Timestamp,
    ) -> Result<(), SimulationError> {
        self.reported_at = now;
        for source in &self.sources {
            let is_up = self.state == FailureState::Up;
            let report = Report {
                state: self.state,
                source: source.clone(),
                observed_at: now,
                last_seen_at: self.silent_since.map(|since| since - ALIVE_BEFORE),
                silent_since: self.silent_since,
                boot: self.boot.clone().filter(|_| is_up),
            };
            let by = Context::own(source);
            let host = host_id.to_string();
            let reported = engine.report_failure_state(&host, report, &by).await;
            reported.map_err(SimulationError::step(format!(
                "source {source:?} reported host {host}"
            )))?;
        }
        Ok(())
    }
}

/// How often what is seen of a host has to be said again: its silence proves something, it is to be taken back, or, `heard_every` so often, it is counted among those that are heard.
pub(crate) fn repeated_every(state: &HostState, heard_every: Option<TimeDelta>) -> Option<TimeDelta> {
    let host = &state.host;
    let fences_itself = state.policy.self_fencing_timeout_s.is_some() && host.fence.is_none();
    match host.failure_state {
        FailureState::Unreachable => fences_itself.then_some(REPEATED_EVERY),
        FailureState::Up if host.fence.is_some() => Some(REPEATED_EVERY),
        FailureState::Up => heard_every,
        FailureState::Unknown => None,
    }
}

/// A source says that a host has a condition.
pub(crate) async fn condition(
    engine: &Engine,
    host_id: HostId,
    source: Option<&str>,
    name: &str,
    status: ConditionStatus,
) -> Result<(), SimulationError> {
    let source = source.unwrap_or(OWN_SOURCE);
    let condition = ReportedCondition {
        name: name.to_owned(),
        status,
        reason: "simulated".to_owned(),
    };
    let host = host_id.to_string();
    let said = (vec![condition], Some(Vec::new()));
    let reported = engine
        .report_conditions(&host, source, said, &Context::own(source))
        .await;
    let doing = format!("condition {name:?} of host {host} was reported");
    reported.map_err(SimulationError::step(doing)).map(drop)
}
