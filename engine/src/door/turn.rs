//! One input's turn: what is decided for it, and what is told of it once that is committed.

use ringfence_core::{Answer, AttemptId, Decision, Effect, Event, HostState, Input, Timestamp, decide};
use ringfence_db::{DeviceClaim, EventHost, NewEvent};

use super::Tried;
use super::queue::Knock;
use crate::configure::check_revision;
use crate::ids::new_id;
use crate::log::Told;
use crate::metrics::Moved;
use crate::relay::Outgoing;
use crate::taken::{Device, claim_in};
use crate::{Engine, EngineError, Receipt};

/// How far the events of a commit are.
#[derive(Clone, Copy, Debug)]
pub(super) enum EventsAre {
    /// They wait for their numbers.
    Written,
    /// Whoever reads sees them.
    Numbered,
}

/// What became of an input.
pub(super) enum Turn {
    /// Nothing is to be written.
    Over(Result<Tried, EngineError>),
    /// What it was decided upon did not come about: it has to be decided anew.
    Anew,
    /// A decision that is to be written.
    Decided(Box<Decided>),
}

/// A decision, and what goes with it.
pub(super) struct Decided {
    pub before: HostState,
    pub decision: Decision,
    pub now: Timestamp,
    told: Told,
    moved: Moved,
    device: Option<DeviceClaim>,
    releases: Option<AttemptId>,
    /// Whether anything is to be written; a claim that only renews itself writes nothing but its device.
    changes: bool,
    /// What it tells, numbered.
    pub events: Vec<NewEvent>,
    /// What has to be published after the commit.
    pub outgoing: Vec<Outgoing>,
}

impl Turn {
    /// Decides an input for the host that was locked for it, as earlier turns have left it.
    pub fn decide(engine: &Engine, knock: &Knock, before: Option<HostState>) -> Self {
        let Some(mut before) = before else {
            return Self::Over(Err(EngineError::NotFound {
                kind: "host",
                id: knock.host_id.to_string(),
            }));
        };
        let now = engine.time_for(before.host.updated_at);
        before.clock_set_at = engine.0.clock.set_at();
        let device = claim_in(&knock.input).and_then(|claim| Device::of(&before, claim));
        let releases = if let Input::Result(result) = &knock.input {
            Some(result.claim.attempt)
        } else {
            None
        };
        let mut decision = match decide(&before, knock.input.clone(), now) {
            Ok(decision) => decision,
            Err(refusal) => {
                knock.door.refused(&before, &refusal);
                return Self::Over(Err(refusal.into()));
            }
        };
        // After everything else that can be wrong with a request (RFC 9110, 13.2.1).
        if let Err(changed) = check_revision(knock.by.if_revision, revision_of_changed(&before, &knock.input))
        {
            return Self::Over(Err(changed));
        }
        let changed = decision.state != before || !decision.effects.is_empty();
        let is_tick = matches!(knock.input, Input::Tick { .. });
        let moved = Moved::of(&before, &decision, releases, now);
        let events = number_events(&mut decision, now);
        count_revisions(&before, &mut decision, now);
        Self::Decided(Box::new(Decided {
            device: device.and_then(|device| device.claimed(&decision.answer, now)),
            told: Told::of(&decision),
            moved,
            changes: changed || is_tick || releases.is_some(),
            before,
            decision,
            now,
            releases,
            events,
            outgoing: Vec::new(),
        }))
    }

    /// The host as this turn leaves it, and as the next one would read it: with an operation that is live, or none.
    pub fn leaves(&self) -> Option<HostState> {
        let Self::Decided(decided) = self else { return None };
        let HostState {
            host,
            operation,
            policy,
            clock_set_at,
        } = &decided.decision.state;
        Some(HostState {
            host: host.clone(),
            operation: operation.clone().filter(|operation| operation.status.is_live()),
            policy: policy.clone(),
            clock_set_at: *clock_set_at,
        })
    }

    /// The device that has to be taken for it.
    pub fn wants(&self) -> Option<DeviceClaim> {
        match self {
            Self::Over(_) | Self::Anew => None,
            Self::Decided(decided) => decided.device.clone(),
        }
    }

    /// The attempt whose devices are given back.
    pub fn releases(&self) -> Option<AttemptId> {
        match self {
            Self::Over(_) | Self::Anew => None,
            Self::Decided(decided) => decided.releases,
        }
    }

    /// The device carries out another command: nothing of the decision holds.
    pub fn refuse_device(&mut self, knock: &Knock) {
        if let Self::Decided(decided) = self {
            knock.door.device_busy(&decided.before);
            *self = Self::Over(Ok(Tried::DeviceBusy));
        }
    }

    /// What is changed for a request: the operation that it is about, began or joined, else the host. `None` where nothing is.
    pub fn receipt(&self, knock: &Knock) -> Option<Receipt> {
        let Self::Decided(decided) = self else { return None };
        if !decided.changes || knock.by.key.is_none() {
            return None;
        }
        Some(match (&knock.input, &decided.decision.answer) {
            (Input::Cancel { operation_id, .. } | Input::Retry { operation_id, .. }, _)
            | (_, Answer::Started(operation_id) | Answer::Joined(operation_id)) => {
                Receipt::Operation(*operation_id)
            }
            _ => Receipt::Host(decided.before.host.id),
        })
    }

    /// Another try has made the change, or carries the request out: nothing of the decision holds.
    pub fn make_way(&mut self) {
        *self = Self::Over(Err(EngineError::KeySpent));
    }

    /// Whether the transaction has anything to commit for it.
    pub fn writes(&self) -> bool {
        match self {
            Self::Over(_) | Self::Anew => false,
            Self::Decided(decided) => decided.changes || decided.device.is_some(),
        }
    }

    /// The decision, if it has to be written.
    pub fn change(&mut self) -> Option<&mut Decided> {
        match self {
            Self::Decided(decided) if decided.changes => Some(decided),
            Self::Decided(_) | Self::Over(_) | Self::Anew => None,
        }
    }

    /// Takes the messages that it has to publish.
    pub fn take_outgoing(&mut self) -> Vec<Outgoing> {
        self.change()
            .map_or_else(Vec::new, |decided| std::mem::take(&mut decided.outgoing))
    }

    /// Whether it has written events.
    pub fn has_events(&self) -> bool {
        matches!(self, Self::Decided(decided) if decided.changes && decided.told.has_events())
    }

    /// It is committed, or there was nothing to commit: counts, and says so. `None` if it has to be decided anew.
    pub fn end(self, engine: &Engine, knock: &Knock) -> Option<Result<Tried, EngineError>> {
        match self {
            Self::Over(answer) => Some(answer),
            Self::Anew => None,
            Self::Decided(decided) => Some(Ok(decided.end(engine, knock))),
        }
    }
}

impl Decided {
    fn end(self, engine: &Engine, knock: &Knock) -> Tried {
        let decided = self;
        let (state, answer) = (decided.decision.state, decided.decision.answer);
        if !decided.changes {
            knock.door.unchanged(&state, &answer);
            return Tried::applied(state, answer);
        }
        knock.door.committed(&state, &answer, &decided.told, &knock.by);
        engine.0.metrics.count_moved(&decided.moved);
        // What is due already and was left undone is not looked at again at once, over and over.
        let (now, next_look) = (decided.now, decided.now + engine.0.config.tick_every);
        if let Some(at) = decided.decision.wake_at.filter(|at| *at > now && *at < next_look) {
            engine.0.alarm.set(at);
        }
        Tried::applied(state, answer)
    }
}

/// The events of a decision, each with its number among those of the host.
fn number_events(decision: &mut Decision, now: Timestamp) -> Vec<NewEvent> {
    let Decision { state, effects, .. } = decision;
    let mut number = |event: &Event| {
        state.host.event_sequence += 1;
        NewEvent {
            id: new_id(),
            host: Some(EventHost {
                id: state.host.id,
                name: state.host.name.clone(),
                segment_id: state.host.segment_id,
                sequence: state.host.event_sequence,
                generation: state.host.generation,
            }),
            kind: event.kind,
            occurred_at: now,
            data: event.data.clone(),
        }
    };
    let events = effects.iter().filter_map(|effect| match effect {
        Effect::Event(event) => Some(event),
        Effect::Dispatch(_) | Effect::Note(_) => None,
    });
    events.map(&mut number).collect()
}

fn count_revisions(before: &HostState, decision: &mut Decision, now: Timestamp) {
    let host = &mut decision.state.host;
    // One that was written before the clock was set back is looked at again and again until it is of the present.
    if *host != before.host || host.updated_at > now {
        host.revision += 1;
        host.updated_at = now;
    }
    let operations = decision
        .superseded
        .iter_mut()
        .chain(&mut decision.state.operation);
    for operation in operations {
        let known = before.operation.as_ref().filter(|known| known.id == operation.id);
        if known != Some(operation) {
            operation.revision += 1;
        }
    }
}

/// The revision of what an input is about: the operation that it names, else the host.
fn revision_of_changed(before: &HostState, input: &Input) -> u64 {
    match (input, &before.operation) {
        (Input::Cancel { .. } | Input::Retry { .. }, Some(operation)) => operation.revision,
        _ => before.host.revision,
    }
}
