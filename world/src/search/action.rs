//! One thing that happens.

use rand::RngExt;
use rand::rngs::SmallRng;

/// One thing that happens. Numbers that choose among what is there are taken modulo how much is there, so that a action means something
/// wherever it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A client asks for a fence.
    Fence,
    /// A client asks for a rejoin; true: and confirms, correctly, that the host was booted anew.
    Rejoin,
    /// A client asks for an evacuation.
    Evacuate,
    /// A person pulls the plugs and says so.
    PullAndSay,
    /// A person pulls the plugs, and writes so where it is read later, if at all.
    PullAndWrite,
    /// What a person has written is read, for the first time or again.
    ReadWord(u8),
    /// A person puts the plugs in.
    PlugIn,
    /// A person releases one item by hand, and an admin says so.
    Release(u8),
    /// A person cancels what is under way.
    Cancel,
    /// A person has the live operation tried again.
    Retry,
    /// A source looks and posts what it saw.
    Look(u8),
    /// A source looks, and its report arrives at once.
    Tell(u8),
    /// All sources tell for so many times 5 s.
    Watch(u8),
    /// One source tells for so many times 5 s.
    WatchBy(u8, u8),
    /// A posted report arrives.
    Post(u8),
    /// A source begins anew.
    SourceRestarts(u8),
    /// A source can hear the host, or not.
    Link(u8, bool),
    /// No source can hear the host.
    Cut,
    /// A message reaches a worker, which claims it.
    Deliver(u8),
    /// The newest message that can be claimed is claimed.
    Take,
    /// A worker commands its device.
    Command(u8),
    /// A worker reads back and posts its result.
    Finish(u8),
    /// A result arrives, for the first time or again.
    Arrive(u8),
    /// A worker shows that it is alive.
    Renew(u8),
    /// The newest message that can be claimed goes the whole way.
    Work,
    /// Everything that is wanted is done, so many times.
    WorkOff,
    /// The host's kernel dies; true: and starts again.
    Crash(bool),
    /// The machine stands still, or goes on.
    Freeze(bool),
    /// A person switches everything on without Ringfence.
    StrangerOn,
    /// The backend stops answering, or answers again.
    CloudAway(bool),
    /// Time passes, in milliseconds.
    Pass(u32),
    /// Time passes while no engine is there.
    PassUnseen(u32),
    /// An engine ticks the host.
    Tick,
    /// Another engine decides from here on, whose clock is so many milliseconds ahead.
    OtherEngine(i16),
    /// The database's clock is set, by seconds.
    SetClock(i32),
    /// Queues move, or not.
    LineMoves(bool),
    /// Workers serve their queue, and no task waits in it.
    LineEmpty,
    /// The bus begins anew, without what was sent before.
    BusAnew,
    /// The broker is away.
    BrokerAway,
    /// The database is gone, but for the host's record.
    Forget,
    /// Another process takes the records over, and the one before is halted; or the database is gone, where there are no records.
    TakeOver,
    /// The process that was halted goes on: with a report of a source, the newest message that can be claimed, a result, or by itself.
    FormerTells(u8),
    /// See there.
    FormerTakes,
    /// See there.
    FormerArrives(u8),
    /// See there.
    FormerTicks,
}

/// What a history is mostly about: chance alone seldom tells a whole story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// Everything.
    Any,
    /// Silence, and who hears what.
    Silence,
    /// Power that goes and comes.
    Power,
    /// Hosts that are cut off, and boots.
    Boots,
    /// Workloads that are started elsewhere.
    Evacuation,
}

impl Theme {
    /// Any theme.
    pub fn any(rng: &mut SmallRng) -> Self {
        match rng.random_range(0..10) {
            0..=3 => Self::Any,
            4 | 5 => Self::Silence,
            6 => Self::Power,
            7 => Self::Boots,
            _ => Self::Evacuation,
        }
    }
}

impl Action {
    /// A action of a theme, or any other.
    pub fn of(theme: Theme, rng: &mut SmallRng) -> Self {
        if theme == Theme::Any || rng.random_bool(0.3) {
            return Self::any(rng);
        }
        let byte = |rng: &mut SmallRng| rng.random::<u8>();
        let often = match rng.random_range(0..20) {
            0..=2 => Some(Self::Tell(byte(rng))),
            3 => Some(Self::Link(byte(rng), rng.random())),
            4 | 5 => Some(Self::Pass(rng.random_range(100..20_000))),
            6 => Some(Self::Watch(rng.random_range(1..8))),
            _ => None,
        };
        if let Some(often) = often {
            return often;
        }
        match theme {
            Theme::Any => Self::any(rng),
            Theme::Silence => match rng.random_range(0..18) {
                0 | 1 => Self::WatchBy(byte(rng), rng.random_range(1..12)),
                2 => Self::Look(byte(rng)),
                3 | 4 => Self::Post(byte(rng)),
                5 => Self::Cut,
                6 | 7 => Self::Link(byte(rng), rng.random()),
                8 => Self::PassUnseen(rng.random_range(1_000..60_000)),
                9 => Self::SourceRestarts(byte(rng)),
                10 => Self::Fence,
                11 => Self::SetClock(rng.random_range(-60..60)),
                12 => Self::Work,
                13 => Self::PullAndWrite,
                14 | 15 => Self::ReadWord(byte(rng)),
                16 => Self::PlugIn,
                _ => Self::Rejoin,
            },
            Theme::Power => match rng.random_range(0..18) {
                0 => Self::Fence,
                1 | 2 => Self::Work,
                3 | 4 => Self::Take,
                5 | 6 => Self::Command(rng.random_range(0..3)),
                7 => Self::Finish(rng.random_range(0..3)),
                8 => Self::Arrive(byte(rng)),
                9 | 10 => Self::StrangerOn,
                11 => Self::Rejoin,
                12 => Self::PullAndSay,
                13 => Self::PullAndWrite,
                14 | 15 => Self::ReadWord(byte(rng)),
                16 => Self::PlugIn,
                _ => Self::Cancel,
            },
            Theme::Boots => match rng.random_range(0..12) {
                0 | 1 => Self::Fence,
                2 | 3 => Self::Work,
                4 | 5 => Self::WorkOff,
                6 | 7 => Self::Rejoin,
                8 => Self::Crash(true),
                9 => Self::StrangerOn,
                10 => Self::Cut,
                _ => Self::Freeze(rng.random()),
            },
            Theme::Evacuation => match rng.random_range(0..16) {
                0 => Self::Evacuate,
                1..=4 => Self::Work,
                5 | 6 => Self::Take,
                7 | 8 => Self::Command(rng.random_range(0..3)),
                9 => Self::Finish(rng.random_range(0..3)),
                10 => Self::StrangerOn,
                11 => Self::Cancel,
                12 => Self::Retry,
                13 => Self::CloudAway(rng.random()),
                14 => Self::Cut,
                _ => Self::Fence,
            },
        }
    }

    /// Of processes that begin with records alone, and of those that they follow.
    pub fn of_leaders(rng: &mut SmallRng) -> Self {
        match rng.random_range(0..10) {
            0 | 1 => Self::Forget,
            2..=4 => Self::TakeOver,
            5 => Self::FormerTells(rng.random()),
            6 | 7 => Self::FormerTakes,
            8 => Self::FormerArrives(rng.random()),
            _ => Self::FormerTicks,
        }
    }

    /// Any action.
    pub fn any(rng: &mut SmallRng) -> Self {
        let byte = |rng: &mut SmallRng| rng.random::<u8>();
        match rng.random_range(0..142) {
            0..=5 => Self::Fence,
            6..=9 => Self::Rejoin,
            10..=12 => Self::Evacuate,
            13 => Self::PullAndSay,
            14 => Self::PlugIn,
            15 => Self::Release(byte(rng)),
            16 | 17 => Self::Cancel,
            18 | 19 => Self::Retry,
            20..=23 => Self::Look(byte(rng)),
            24..=31 => Self::Tell(byte(rng)),
            32..=36 => Self::Watch(rng.random_range(1..20)),
            37..=41 => Self::Post(byte(rng)),
            42 => Self::SourceRestarts(byte(rng)),
            43..=47 => Self::Link(byte(rng), rng.random()),
            48 | 49 => Self::Cut,
            50..=54 => Self::Deliver(byte(rng)),
            55..=59 => Self::Take,
            60..=65 => Self::Command(byte(rng)),
            66..=69 => Self::Finish(byte(rng)),
            70..=74 => Self::Arrive(byte(rng)),
            75 => Self::Renew(byte(rng)),
            76..=87 => Self::Work,
            88..=93 => Self::WorkOff,
            94 | 95 => Self::Crash(rng.random()),
            96 | 97 => Self::Freeze(rng.random()),
            98..=100 => Self::StrangerOn,
            101 => Self::CloudAway(rng.random()),
            102..=110 => Self::Pass(rng.random_range(0..3_000)),
            111..=117 => Self::Pass(rng.random_range(3_000..60_000)),
            118 | 119 => Self::Pass(rng.random_range(60_000..700_000)),
            120..=122 => Self::PassUnseen(rng.random_range(0..90_000)),
            123 | 124 => Self::Tick,
            125 | 126 => Self::OtherEngine(rng.random_range(-500..500)),
            127 => Self::SetClock(if rng.random() {
                rng.random_range(-100..100)
            } else {
                86_400
            }),
            128 => Self::LineMoves(rng.random()),
            129 => Self::BrokerAway,
            130..=134 => Self::Tell(byte(rng)),
            135 => Self::LineEmpty,
            136 => Self::BusAnew,
            137 => Self::PullAndWrite,
            138 | 139 => Self::ReadWord(byte(rng)),
            _ => Self::Work,
        }
    }

    /// Places from which it gets interesting, and which chance alone seldom reaches.
    pub fn beginning(rng: &mut SmallRng) -> Vec<Self> {
        let fenced = [
            Self::Tell(0),
            Self::Tell(1),
            Self::Cut,
            Self::Watch(8),
            Self::Fence,
            Self::WorkOff,
        ];
        let more: &[Self] = match rng.random_range(0..14) {
            0 => return Vec::new(),
            1 => return fenced[..5].to_vec(),
            2 => return [&fenced[..5], &[Self::Take]].concat(),
            3 => return [&fenced[..4], &[Self::Watch(19)]].concat(),
            4 => &[],
            5 => &[Self::Pass(9_000)],
            6 => &[Self::Pass(9_000), Self::Evacuate, Self::Work, Self::Work],
            7 => &[
                Self::Pass(9_000),
                Self::Evacuate,
                Self::Work,
                Self::Work,
                Self::Take,
                Self::Cancel,
                Self::Rejoin,
            ],
            8 => &[Self::Pass(9_000), Self::Rejoin, Self::Work],
            9 => &[Self::Pass(9_000), Self::Rejoin, Self::Take],
            10 => &[
                Self::Pass(9_000),
                Self::Rejoin,
                Self::Take,
                Self::Command(0),
                Self::Fence,
            ],
            11 => &[
                Self::Pass(9_000),
                Self::StrangerOn,
                Self::Link(0, true),
                Self::Pass(20_000),
                Self::Tell(0),
            ],
            12 => &[
                Self::Link(0, true),
                Self::Pass(5_000),
                Self::Tell(0),
                Self::Rejoin,
            ],
            _ => &[
                Self::Pass(20_000),
                Self::Work,
                Self::Rejoin,
                Self::Link(0, true),
                Self::Work,
                Self::Pass(20_000),
                Self::Tell(0),
                Self::WorkOff,
            ],
        };
        [&fenced[..], more].concat()
    }
}
