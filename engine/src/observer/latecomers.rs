//! Workloads that come onto a host after its evacuation has emptied it are evacuated too.

use std::collections::BTreeMap;
use std::time::Duration;

use ringfence_backends::{Platform, StepOrder, Unanswered};
use ringfence_core::{
    Finding, Generation, HostId, HostState, LookForLatecomers, Timestamp, are_latecomers, error_chain,
    look_for_latecomers,
};
use tokio::time::Instant;

use crate::{Context, Engine};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(20);
/// The longest that one look may take: meanwhile no sighting of a host is reported. The next look goes on with the other hosts.
const AT_LONGEST: Duration = Duration::from_secs(2);
/// Evacuations of one fence that are begun so: what binds workloads to a FENCED host again and again is for a person to find.
const AT_MOST: u32 = 5;
const REASON: &str = "workloads came onto the host after it was emptied";

/// What one engine knows of the emptied hosts of one platform.
#[derive(Default)]
pub(super) struct Latecomers {
    looked_at: Option<Instant>,
    /// The host that was looked at last.
    last: Option<HostId>,
    /// How often a host was evacuated again, in which generation.
    again: BTreeMap<HostId, (Generation, u32)>,
}

impl Latecomers {
    /// Looks for them, where it is time.
    pub async fn look(
        &mut self,
        engine: &Engine,
        platform: &dyn Platform,
        states: &[HostState],
        now: Timestamp,
    ) {
        if self.looked_at.is_some_and(|at| at.elapsed() < EVERY) {
            return;
        }
        self.looked_at = Some(Instant::now());
        self.again
            .retain(|id, _| states.iter().any(|state| state.host.id == *id));
        let until = Instant::now() + AT_LONGEST;
        for (state, question) in self.in_turn(states, now) {
            if Instant::now() >= until {
                break;
            }
            self.last = Some(state.host.id);
            if has_any(platform, state, &question, until).await {
                self.evacuate(engine, state).await;
            }
        }
    }

    /// The hosts to look at, those after the last one first.
    fn in_turn<'a>(
        &self,
        states: &'a [HostState],
        now: Timestamp,
    ) -> Vec<(&'a HostState, LookForLatecomers)> {
        let asked = states.iter().filter(|state| self.may_again(state));
        let asked = asked.filter_map(|state| Some((state, look_for_latecomers(state, now)?)));
        let mut hosts: Vec<_> = asked.collect();
        hosts.sort_by_key(|(state, _)| (Some(state.host.id) <= self.last, state.host.id));
        hosts
    }

    fn may_again(&self, state: &HostState) -> bool {
        let host = &state.host;
        let again = self.again.get(&host.id);
        let again = again.filter(|(generation, _)| *generation == host.generation);
        again.is_none_or(|(_, times)| *times < AT_MOST)
    }

    async fn evacuate(&mut self, engine: &Engine, state: &HostState) {
        let host = &state.host;
        let again = self.again.entry(host.id).or_insert((host.generation, 0));
        if again.0 != host.generation {
            *again = (host.generation, 0);
        }
        again.1 += 1;
        if again.1 == AT_MOST {
            tracing::warn!(
                host = host.name,
                "workloads came onto the FENCED host again and again; find out what binds them to it. It is not evacuated again by itself"
            );
        }
        let by = Context::own("ringfence").as_program();
        if let Err(error) = engine.evacuate(&host.id.to_string(), REASON, &by).await {
            tracing::debug!(host = host.name, error = %error_chain(&error), "the host is not evacuated again");
        }
    }
}

async fn has_any(
    platform: &dyn Platform,
    state: &HostState,
    question: &LookForLatecomers,
    until: Instant,
) -> bool {
    let order = StepOrder {
        step: &question.step,
        at: &question.at,
        movable: question.movable,
        generation: state.host.generation,
        unanswered: &Unanswered::default(),
    };
    // What cannot be read is looked at again.
    match platform.carry_out(order, until - Instant::now()).await.finding {
        Some(Finding::Workloads(found)) => are_latecomers(state, &found),
        _ => false,
    }
}
