//! What a search has to reach so that it means something.

use ringfence_core::{OperationKind, OperationStatus, ProofKind, gates};
use ringfence_world::Machine;

use crate::Life;

macro_rules! goals {
    ($($(#[doc = $what:literal])+ $name:ident),+ $(,)?) => {
        /// Something that a state may be.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Goal { $($(#[doc = $what])+ $name),+ }

        impl Goal {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Its name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),+ }
            }
        }
    };
}

goals! {
    /// The host is FENCED.
    Fenced,
    /// The evacuate gate is open.
    OpenGate,
    /// The host is FENCED, and what had proven that holds no more.
    ProofEnded,
    /// FENCED by the host's own watchdog alone.
    SelfFenced,
    /// FENCED by a message of the host's crash kernel.
    ByKdump,
    /// FENCED by a person's word.
    ByWord,
    /// The host is FENCED, and something of it runs.
    RunsFenced,
    /// A proof has yet to settle.
    Settling,
    /// The host was FENCED and is UNFENCED.
    Unfenced,
    /// Storage was cut and is connected again.
    StorageBack,
    /// A workload runs elsewhere.
    Moved,
    /// A fence waits for a person.
    FenceAsks,
    /// A rejoin waits for a person.
    RejoinAsks,
    /// An evacuation is under way.
    Evacuating,
    /// Two workers act for one host.
    TwoAct,
    /// What a worker did may yet come true although it has stopped.
    Lingers,
    /// A person has said what is not so.
    Hearsay,
}

impl Goal {
    /// Whether a state is so.
    #[must_use]
    pub fn is_reached(self, life: &Life) -> bool {
        let world = &life.world;
        let host = &world.state.host;
        let fence = host.fence.as_ref();
        let good = host.good_fence();
        let live = world.state.operation.as_ref();
        let asks =
            |kind| live.is_some_and(|o| o.kind() == kind && o.status == OperationStatus::NeedsOperator);
        let by_alone = |kind| {
            let mut kinds = good
                .into_iter()
                .flat_map(|fence| fence.standing())
                .map(|proof| proof.kind);
            good.is_some() && kinds.all(|known| known == kind)
        };
        match self {
            Self::Fenced => fence.is_some(),
            Self::OpenGate => gates(&world.state, world.now).evacuate.allowed,
            Self::ProofEnded => fence.is_some_and(|fence| !fence.holds()),
            Self::SelfFenced => by_alone(ProofKind::SelfFencing),
            Self::ByKdump => by_alone(ProofKind::Kdump),
            Self::ByWord => by_alone(ProofKind::Operator),
            Self::RunsFenced => fence.is_some() && world.site.running && world.site.machine == Machine::On,
            Self::Settling => fence.is_none() && live.is_some_and(|live| !live.proofs.is_empty()),
            Self::Unfenced => fence.is_none() && life.was_taken_back,
            Self::StorageBack => world.site.has_had_storage_back,
            Self::Moved => !world.cloud.started.is_empty(),
            Self::FenceAsks => asks(OperationKind::Fence),
            Self::RejoinAsks => asks(OperationKind::Rejoin),
            Self::Evacuating => live.is_some_and(|live| live.kind() == OperationKind::Evacuation),
            Self::TwoAct => world.jobs.len() > 1,
            Self::Lingers => host.in_flight.len() > world.jobs.len() + world.results.len(),
            Self::Hearsay => world.is_hearsay,
        }
    }
}
