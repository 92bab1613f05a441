//! The copy of the state that a simulation begins with.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{
    Alarms, Applied, Backend, Condition, Conditions, FailureState, Fence, Flapping, Generation, Host, HostId,
    Labels, OperationId, Parameters, Proof, SegmentId, Sources, SufficientSet, Suspension, Timestamp,
};
use ringfence_engine::SiteCopy;

/// The copy of the state.
#[derive(Clone, Debug, Default)]
pub struct Site {
    /// What is on record. Evacuations do not begin by themselves in it.
    pub copy: SiteCopy,
    /// How its hosts are seen.
    pub seen: BTreeMap<HostId, Seen>,
    /// Hosts whose fence is under way: it begins anew.
    pub being_fenced: BTreeSet<HostId>,
}

/// How a host is seen when the simulation begins.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// What its sources say.
    pub state: FailureState,
    /// Since when, where it is silent.
    pub since: Option<Timestamp>,
    /// Whether it has to show a newer boot than it has before it is taken back.
    pub needs_boot: bool,
    /// Those who watch it; one source of the simulation where there is none.
    pub sources: Vec<String>,
    /// What sources say is wrong with it: the source, the name, and what is known of it.
    pub conditions: Vec<(String, String, Condition)>,
}

/// What can be known of a host from outside.
#[derive(Clone, Debug)]
pub struct HostFacts {
    /// Its id.
    pub id: HostId,
    /// Its name.
    pub name: String,
    /// Its segment.
    pub segment_id: SegmentId,
    /// Where its workloads live.
    pub backend: Backend,
    /// In which cloud or cluster.
    pub cloud: Option<String>,
    /// What its backend calls it.
    pub known_as: Option<String>,
    /// The group of hosts that share a plan.
    pub host_type: Option<String>,
    /// From where its devices can be reached.
    pub zone: String,
    /// What an operator tells it apart by.
    pub labels: Labels,
    /// Values for the parameters of methods, by method name.
    pub parameters: BTreeMap<String, Parameters>,
    /// Its generation.
    pub generation: Generation,
    /// What it is FENCED by, and since when, where it is.
    pub fenced: Option<(Timestamp, Vec<Proof>)>,
    /// Its own suspension.
    pub suspension: Option<Suspension>,
    /// Since when it is in quarantine.
    pub quarantined_at: Option<Timestamp>,
    /// Whether a fence has answered its silence already, so that no other one begins by itself.
    pub is_silence_answered: bool,
    /// When it was added.
    pub created_at: Timestamp,
    /// How it is seen.
    pub seen: Seen,
}

impl HostFacts {
    /// A host that answers, of which nothing else is known.
    #[must_use]
    pub fn new(id: HostId, name: &str, segment_id: SegmentId, created_at: Timestamp) -> Self {
        Self {
            id,
            name: name.to_owned(),
            segment_id,
            backend: Backend::None,
            cloud: None,
            known_as: None,
            host_type: None,
            zone: ringfence_core::DEFAULT_ZONE.to_owned(),
            labels: Labels::new(),
            parameters: BTreeMap::new(),
            generation: Generation::default(),
            fenced: None,
            suspension: None,
            quarantined_at: None,
            is_silence_answered: false,
            created_at,
            seen: Seen {
                state: FailureState::Up,
                ..Seen::default()
            },
        }
    }
}

impl Site {
    /// Adds a host.
    pub fn add(&mut self, facts: HostFacts) {
        let fence = facts
            .fenced
            .map(|(at, proofs)| fence(facts.generation, at, proofs));
        let fenced_at = fence.iter().map(|fence| fence.at).collect();
        self.seen.insert(facts.id, facts.seen);
        self.copy.hosts.push(Host {
            id: facts.id,
            name: facts.name,
            segment_id: facts.segment_id,
            backend: facts.backend,
            cloud: facts.cloud,
            known_as: facts.known_as,
            host_type: facts.host_type,
            zone: facts.zone,
            labels: facts.labels,
            parameters: facts.parameters,
            sources: Sources::default(),
            failure_state: FailureState::Unknown,
            failure_source: None,
            failure_observed_at: None,
            failure_since: None,
            conditions: Conditions::default(),
            suspension: facts.suspension,
            flapping: Flapping {
                fenced_at,
                quarantined_at: facts.quarantined_at,
            },
            alarms: Alarms::default(),
            braked_at: None,
            kdump: None,
            generation: facts.generation,
            fence,
            is_silence_answered: facts.is_silence_answered,
            released_at: None,
            last_off_at: None,
            applied: Applied::default(),
            in_flight: Vec::new(),
            event_sequence: 0,
            revision: 1,
            created_at: facts.created_at,
            updated_at: facts.created_at,
        });
    }
}

/// The proofs that hold are a sufficient set; where none does, all of them were one.
fn fence(generation: Generation, at: Timestamp, proofs: Vec<Proof>) -> Fence {
    let kinds = |is_it: fn(&&Proof) -> bool| -> SufficientSet {
        proofs.iter().filter(is_it).map(|proof| proof.kind).collect()
    };
    let standing = kinds(|proof| proof.ended.is_none());
    let set = if standing.is_empty() {
        kinds(|_| true)
    } else {
        standing
    };
    let operation_id = proofs
        .first()
        .map_or_else(|| OperationId(uuid::Uuid::new_v4()), |proof| proof.operation_id);
    Fence {
        generation,
        operation_id,
        at,
        sets: vec![set],
        proofs,
        off_until: None,
        is_evacuation_begun: true,
        is_emptied: true,
    }
}
