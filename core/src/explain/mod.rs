//! Why a host is in its state, and what a fence would do now. Nothing is changed by it.
//!
//! What a request would be answered is asked of [`decide`](crate::decide) itself, what the gates would say of [`gates`] itself, and whether
//! an automatic fence would be held of the storm brake itself: no rule is written down a second time.

mod brake;
mod facts;
mod past;
mod preview;
mod prospect;

pub use self::brake::StormBrake;
pub use self::facts::{Facts, MethodFacts};
pub use self::past::{LastFence, LastTime, PastTimes};
pub use self::preview::FencePreview;
pub use self::prospect::{ProofProspect, SetProspect};
use crate::platform::platform_of;
use crate::{
    Cause, FailureState, Gates, HostState, Input, Operation, PlatformHost, Ruling, Seen, Timestamp, gates,
    rulings,
};

/// Why a host is in its state, and what a fence would do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation<'a> {
    /// The verdict over the reports of all sources, and why.
    pub seen: Seen<'a>,
    /// The gates now.
    pub gates: Gates,
    /// What the live operation waits for, or why it stands where it does; `None` if no operation holds the host.
    pub waits_for: Option<String>,
    /// What the request would be answered, and what would follow.
    pub fence: FencePreview,
    /// The sufficient sets, and what keeps each from being completed.
    pub sets: Vec<SetProspect>,
    /// Whether the storm brake would hold an automatic fence.
    pub brake: StormBrake,
    /// What every safeguard would say of an automatic fence, if the host were silent.
    pub safeguards: Vec<Ruling>,
    /// The platform that would be told of a FENCED host.
    pub platform: Option<PlatformHost>,
}

impl<'a> Explanation<'a> {
    /// `request` is the input that a fence would be; it is decided upon, and the decision is dropped.
    #[must_use]
    pub fn new(state: &'a HostState, request: Input, facts: &Facts, now: Timestamp) -> Self {
        let fence = FencePreview::new(state, request, now);
        let live = state.operation.as_ref().filter(|known| known.status.is_live());
        Self {
            seen: state.host.sources.seen(now),
            gates: gates(state, now),
            waits_for: live.map(Operation::told),
            sets: prospect::sets(facts, state, &fence, now),
            fence,
            brake: StormBrake::new(state, facts.around.clone()),
            safeguards: rulings(
                state,
                Cause::Silence,
                FailureState::Unreachable,
                &facts.around,
                &facts.opinions,
                now,
            ),
            platform: platform_of(state),
        }
    }
}
