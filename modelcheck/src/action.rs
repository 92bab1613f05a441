//! One thing that happens.

use crate::Chance;

/// One thing that happens. Numbers are places in the lists of the state in which it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A person asks for a fence.
    Fence,
    /// A person asks for a rejoin.
    Rejoin,
    /// A person asks for an evacuation.
    Evacuate,
    /// A person cancels what is under way.
    Cancel,
    /// A person has tried again what waits.
    Retry,
    /// A person pulls the plugs and says so.
    Say,
    /// A person says so, and has not done it.
    Lie,
    /// A person says so of the generation before.
    SayLate,
    /// A person pulls the plugs, and writes so where it is read later.
    Write,
    /// What a person has written is read.
    Read(u8),
    /// A person puts the plugs in.
    PlugIn,
    /// A person releases by hand what stands at this place, and says so.
    Release(u8),
    /// A source hears the host no more.
    Cut(u8),
    /// A source hears the host again.
    Heal(u8),
    /// A source says what it sees, and is heard at once.
    Tell(u8),
    /// A source says what it sees, and is heard later.
    Post(u8),
    /// A source is heard.
    Hear(u8),
    /// A worker gets a message and claims it.
    Take(u8),
    /// A worker commands its device.
    Command(u8),
    /// A worker reads back, sends its result, and has stopped.
    Finish(u8),
    /// A result arrives.
    Arrive(u8),
    /// A result arrives, and will arrive once more.
    ArriveTwice(u8),
    /// A message goes the whole way.
    Work(u8),
    /// The engine does what is due.
    Tick,
    /// Time passes until something changes.
    Step,
    /// Time passes for a moment.
    Pause,
    /// Time passes until something changes, and no engine is there.
    Unseen,
    /// The kernel dies.
    Die,
    /// The kernel dies, and the host starts again.
    Reboot,
    /// The machine starts again after its dump.
    StartAgain,
    /// The crash kernel sends a message.
    Send,
    /// A worker hears a message of a crash kernel.
    HearMessage(u8),
    /// An engine is told of one.
    TellMessage(u8),
    /// An engine is told of one, and will be told once more.
    TellMessageTwice(u8),
    /// Another party switches the host on.
    Stranger,
    /// Another engine decides from here on, whose clock is so many milliseconds ahead.
    Engine(i16),
    /// The clock is set, by so many seconds.
    Clock(i16),
    /// The cloud does not answer any more, or answers again.
    Cloud,
    /// The database is gone, but for the host's record.
    Forget,
    /// Another process takes the records over, and the one before is halted.
    TakeOver,
    /// The process before hears what a source says.
    FormerTells(u8),
    /// A worker of the process before claims its newest message.
    FormerTakes,
    /// The process before does what is due.
    FormerTicks,
}

impl Action {
    /// Which chance it takes, if it does not follow from what has happened before.
    #[must_use]
    pub fn costs(self) -> Option<Chance> {
        Some(match self {
            Self::Fence => Chance::Fence,
            Self::Rejoin => Chance::Rejoin,
            Self::Evacuate => Chance::Evacuate,
            Self::Cancel => Chance::Cancel,
            Self::Retry => Chance::Retry,
            Self::Say => Chance::Say,
            Self::Lie => Chance::Lie,
            Self::SayLate => Chance::SayLate,
            Self::Write => Chance::Write,
            Self::PlugIn => Chance::PlugIn,
            Self::Release(_) => Chance::Release,
            Self::Cut(_) => Chance::Cut,
            Self::Heal(_) => Chance::Heal,
            Self::Tell(_) => Chance::Tell,
            Self::Post(_) => Chance::Post,
            Self::ArriveTwice(_) => Chance::Double,
            Self::Step => Chance::Step,
            Self::Pause => Chance::Pause,
            Self::Unseen => Chance::Unseen,
            Self::Die => Chance::Die,
            Self::Reboot => Chance::Reboot,
            Self::StartAgain => Chance::StartAgain,
            Self::Send => Chance::Send,
            Self::TellMessageTwice(_) => Chance::Double,
            Self::Stranger => Chance::Stranger,
            Self::Engine(_) => Chance::Engine,
            Self::Clock(_) => Chance::Clock,
            Self::Cloud => Chance::Cloud,
            Self::Forget => Chance::Forget,
            Self::TakeOver => Chance::TakeOver,
            Self::FormerTells(_) | Self::FormerTakes | Self::FormerTicks => Chance::Former,
            Self::Hear(_)
            | Self::HearMessage(_)
            | Self::TellMessage(_)
            | Self::Read(_)
            | Self::Take(_)
            | Self::Command(_)
            | Self::Finish(_)
            | Self::Arrive(_)
            | Self::Work(_)
            | Self::Tick => return None,
        })
    }
}
