//! Arbitrary histories: what people, monitors, workers, messages and clocks may do to a host, in any order.

mod doing;
mod histories;

pub use self::doing::{act, live_through, wanted};
pub use self::histories::history;

use proptest::sample::Index;
use ringfence_core::*;

/// The sources that speak the truth.
const SOURCES: [&str; 2] = ["monitor", "probe"];

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Action {
    Fence,
    Rejoin {
        boot_confirmed: bool,
    },
    Evacuate,
    /// So many of the nine others are silent.
    OthersFail(u8),
    /// The backend stops answering, or answers again.
    CloudGoesAway(bool),
    /// The other hosts fill up, or have room again.
    RoomGoes(bool),
    /// A person says so, whether it is true or not.
    Say {
        generation_off_by: i8,
        is_admin: bool,
        override_up: bool,
    },
    /// A person pulls the plugs and says so.
    PullAndSay,
    /// A person gives something back by hand, as far as that is possible, and an admin (or somebody who is none) says so.
    Release {
        of: Index,
        is_admin: bool,
    },
    Cancel,
    CancelAnOldOne,
    Retry,
    /// A source can hear the host, or not, and reports what it hears. Its report may take a while.
    SeeTruly {
        by: u8,
        link: bool,
        boot: Told,
        late_ms: u32,
    },
    /// Every source that has ever reported says every five seconds what it hears, so many times.
    Watch(u8),
    /// A source reports anything, observed some seconds ago.
    Report {
        state: FailureState,
        age_s: i8,
        boot: Option<u8>,
    },
    /// A person strikes off a source.
    ForgetSource(u8),
    /// Some message reaches some worker, which claims it and does no more.
    Deliver(Index),
    Busy(Index),
    Renew(Index),
    /// A worker commands its device.
    Command(Index),
    /// A worker reads back and sends its result.
    Finish(Index),
    /// Some result arrives, for the first time or again.
    Arrive(Index),
    /// The newest message reaches a worker, which claims it and does no more.
    Take,
    /// The newest message goes the whole way.
    Work,
    /// Whatever is wanted is done, honestly, until nothing more is.
    WorkOff,
    /// Someone makes a result up.
    Forge {
        of: Index,
        lie: Lie,
    },
    Pass(u32),
    PassUnseen(u32),
    Tick,
    /// Workers begin to take tasks from the queue of power, or stop.
    LineMoves(bool),
    BrokerGoesAway,
    MoveClock(i32),
    /// A stranger switches the host on.
    PowerReturns,
    /// The host's kernel dies; it starts again by itself, or not.
    Crash(bool),
}

/// What a source says about the boot that it hears.
#[derive(Clone, Copy, Debug)]
pub enum Told {
    Nothing,
    Id,
    /// With the date by the host's clock, which is so many seconds ahead.
    Dated(i8),
    /// A date and no id.
    DateAlone(i8),
}

/// What is wrong with a result.
#[derive(Clone, Copy, Debug)]
pub enum Lie {
    Host,
    Operation,
    Number,
    Generation,
    Kind,
    Worker,
    ClaimId,
    /// Everything is right, but for what is said: success without anything read back.
    NothingRead,
    /// Success with another state read back.
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

/// Which actions a property is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truthfulness {
    /// Anything goes.
    Any,
    /// Monitors and people speak the truth, and clocks run.
    Truthful,
}
