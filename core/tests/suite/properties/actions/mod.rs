//! Arbitrary histories: actions of people, monitors, workers, messages and clocks on a host, in any order.

mod doing;
mod histories;

pub use self::doing::{act, live_through, wanted};
pub use self::histories::{history, say};

use proptest::sample::Index;
use ringfence_core::*;

/// The sources whose reports are true.
const SOURCES: [&str; 2] = ["monitor", "probe"];

/// What a problem detector may say of the host.
pub const SICKNESS: &str = "KernelDeadlock";

/// One action.
#[derive(Clone, Debug)]
pub enum Action {
    Fence,
    /// A program asks for a fence.
    AskByProgram,
    Rejoin {
        boot_confirmed: bool,
    },
    Evacuate,
    /// Makes this number of the nine other hosts silent.
    OthersFail(u8),
    /// Stops or starts the backend's answers.
    CloudGoesAway(bool),
    /// Fills the other hosts up, or makes room on them.
    RoomGoes(bool),
    /// A person confirms the fence, truly or not.
    Say {
        generation_off_by: i8,
        ago_ms: u32,
        is_admin: bool,
        override_up: bool,
    },
    /// A person unplugs the host and confirms the fence.
    PullAndSay,
    /// A person gives something back by hand, as far as possible, and an admin or another user confirms it.
    Release {
        of: Index,
        is_admin: bool,
    },
    Cancel,
    /// A program asks for a rejoin.
    RejoinByProgram,
    /// A program asks for an evacuation.
    EvacuateByProgram,
    /// The program that asks for fences cancels.
    CancelByProgram,
    CancelAnOldOne,
    Retry,
    /// Opens or cuts a source's link to the host. The source reports what it hears, possibly late.
    SeeTruly {
        by: u8,
        link: bool,
        boot: Told,
        late_ms: u32,
    },
    /// Every source that has reported before reports every five seconds, this number of times.
    Watch(u8),
    /// A source reports any state, observed some seconds ago.
    Report {
        state: FailureState,
        age_s: i8,
        boot: Option<u8>,
    },
    /// A problem detector says whether the host is sick.
    Ail(bool),
    /// A person suspends the host, its segment or all hosts, for this number of seconds; without an end if there is none.
    Suspend(SuspensionScope, Option<u16>),
    Resume(SuspensionScope),
    /// A person removes a source.
    ForgetSource(u8),
    /// Any message reaches a worker, which claims it and does no more.
    Deliver(Index),
    Busy(Index),
    Renew(Index),
    /// A worker sends its command to the device.
    Command(Index),
    /// A worker reads the device and sends its result.
    Finish(Index),
    /// Any result arrives, for the first time or again.
    Arrive(Index),
    /// The newest message reaches a worker, which claims it and does no more.
    Take,
    /// The newest message is claimed and carried out, and its result arrives.
    Work,
    /// Honest workers carry out all messages until none is left.
    WorkOff,
    /// A forged or wrong result arrives.
    Forge {
        of: Index,
        lie: Lie,
    },
    Pass(u32),
    PassUnseen(u32),
    Tick,
    /// Workers start or stop taking tasks from the queue of power.
    LineMoves(bool),
    BrokerGoesAway,
    MoveClock(i32),
    /// A person switches the host on.
    PowerReturns,
    /// The host's kernel crashes; the host starts again by itself, or not.
    Crash(bool),
}

/// What a source reports about the boot that it hears.
#[derive(Clone, Copy, Debug)]
pub enum Told {
    Nothing,
    Id,
    /// The id, and the date by the host's clock, which is this number of seconds ahead.
    Dated(i8),
    /// The date without an id.
    DateAlone(i8),
}

/// The error of a wrong result.
#[derive(Clone, Copy, Debug)]
pub enum Lie {
    Host,
    Operation,
    Number,
    Generation,
    Kind,
    Worker,
    ClaimId,
    /// Only the observation is wrong: success without an observation.
    NothingRead,
    /// Success with another observed state.
    WrongState,
}

impl Lie {
    pub const IN_THE_NAME: [Self; 7] = [
        Self::Host,
        Self::Operation,
        Self::Number,
        Self::Generation,
        Self::Kind,
        Self::Worker,
        Self::ClaimId,
    ];
}

/// Which actions a property needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truthfulness {
    /// All actions.
    Any,
    /// Monitors and people are truthful, and no clock is set.
    Truthful,
}
