//! The requests that share a transaction.

use std::collections::HashMap;

use ringfence_core::{AttemptId, HostId, HostState, Input};
use ringfence_db::{Changes, NotHad};

use super::Tried;
use super::changes::changes;
use super::decision::Outcome;
use super::queue::Request;
use crate::{Engine, EngineError};

/// What each of some requests came to.
pub(super) struct Batch(Vec<Outcome>);

impl Batch {
    /// Decides each request upon what those before it have left of its host.
    pub fn decide(engine: &Engine, requests: &[Request], found: Vec<HostState>) -> Self {
        let mut hosts: HashMap<HostId, HostState> =
            found.into_iter().map(|state| (state.host.id, state)).collect();
        let mut waiting: HashMap<HostId, usize> = HashMap::with_capacity(requests.len());
        for request in requests {
            *waiting.entry(request.host_id).or_default() += 1;
        }
        let mut leases: HashMap<String, AttemptId> = HashMap::new();
        let mut outcomes = Vec::with_capacity(requests.len());
        for request in requests {
            // Most are alone with their host, and a host is a large thing to copy.
            let waiting = waiting.entry(request.host_id).or_default();
            *waiting = waiting.saturating_sub(1);
            let state = match *waiting {
                0 => hosts.remove(&request.host_id),
                _ => hosts.get(&request.host_id).cloned(),
            };
            let span = request.log.span();
            let outcome = span.in_scope(|| Outcome::decide(engine, request, state, &mut leases));
            if *waiting > 0
                && let Some(state) = outcome.leaves()
            {
                hosts.insert(request.host_id, state);
            }
            outcomes.push(outcome);
        }
        Self(outcomes)
    }

    /// Each host as it is to be, and whether a worker is to act upon that.
    pub fn states(&self, requests: &[Request]) -> Vec<(HostState, bool)> {
        let mut states: HashMap<HostId, (HostState, bool)> = HashMap::new();
        for (outcome, request) in self.0.iter().zip(requests) {
            let Some(state) = outcome.leaves() else { continue };
            let is_claimed = matches!(request.input, Input::Claim(_) | Input::Renew(_));
            let known = states
                .get(&request.host_id)
                .is_some_and(|(_, is_claimed)| *is_claimed);
            states.insert(request.host_id, (state, known || is_claimed));
        }
        states.into_values().collect()
    }

    /// What is to be written; `None` if nothing is.
    pub fn changes<'b>(&'b mut self, engine: &Engine, requests: &'b [Request]) -> Option<Changes<'b>> {
        self.0
            .iter()
            .any(Outcome::writes)
            .then(|| changes(engine, &mut self.0, requests))
    }

    /// Answers the requests that were not given their device, their permit or their key, and takes them away from the others. Nothing was changed.
    pub fn answer_refused(self, requests: &mut Vec<Request>, not_had: &NotHad) {
        let all = std::mem::take(requests);
        for (request, outcome) in all.into_iter().zip(self.0) {
            let span = request.log.span();
            match span.in_scope(|| outcome.refused(&request, not_had)) {
                Some(refused) => drop(request.answer.send(refused)),
                None => requests.push(request),
            }
        }
    }

    /// The answers, once everything is committed. Workers and listeners come first: they wait, and lines in the log do not.
    pub async fn end(
        mut self,
        engine: &Engine,
        requests: &[Request],
        are_events_announced: bool,
        is_alone: bool,
    ) -> Vec<Result<Tried, EngineError>> {
        for (outcome, request) in self.0.iter_mut().zip(requests) {
            let outgoing = outcome.take_outgoing();
            engine.0.relay.send(outgoing, &request.log.span(), is_alone).await;
        }
        if !are_events_announced && self.0.iter().any(Outcome::has_events) {
            if is_alone {
                engine.pass_on_events().await;
            } else {
                engine.events_written();
            }
        }
        let ended = self.0.into_iter().zip(requests);
        let end = |(outcome, request): (Outcome, &Request)| {
            let span = request.log.span();
            span.in_scope(|| outcome.end(engine, request))
        };
        ended.map(end).collect()
    }
}
