//! The script: which faults begin when, last how long, and concern what. A seed repeats it.

use std::fmt;
use std::ops::Range;

use ringfence_core::Resource;
use ringfence_simulators::FaultKind;

use crate::broker::Mischief;
use crate::options::{Ground, Options};
use crate::rng::Dice;

/// The longest delay of a slow device, in milliseconds: within the deadline of its method.
const SLOWEST_MS: u64 = 2_500;
/// The processes on each ground.
const STANDALONE: &[&str] = &["standalone"];
const DISTRIBUTED: &[&str] = &["api-1", "api-2", "engine-1", "engine-2", "worker-1", "worker-2"];
/// On the distributed ground the database is restarted once in each period of this length, and so is the broker. The broker needs up to
/// ten seconds to come back.
const DATABASE_RESTARTS_EVERY_MS: u64 = 12_000;
const BROKER_RESTARTS_EVERY_MS: u64 = 45_000;

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Start, in milliseconds since the start of the campaign.
    pub at_ms: u64,
    /// Duration in milliseconds, for faults that do not end by themselves.
    pub lasts_ms: u64,
    /// The kind of fault, with its object.
    pub(crate) what: What,
}

/// A kind of fault, with its object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A device has a fault.
    Device(usize, Resource, FaultKind),
    /// Reports of a host have a fault.
    Report(usize, Astray),
    /// A host is switched on without Ringfence.
    SwitchedOn(usize),
    /// A process is killed.
    Killed(usize),
    /// A process is halted.
    Halted(usize),
    /// A process cannot write files.
    DiskFull(usize),
    /// The site's clock is set by this number of milliseconds.
    ClockSet(i64),
    /// The clock of one machine differs from the others by this number of milliseconds.
    MachineApart(usize, i64),
    /// The database's clock differs for one process by this number of milliseconds.
    EngineApart(usize, i64),
    /// A connection is cut, hangs or is slow.
    Way(usize, Leg, Trouble),
    /// The database is killed and started again.
    DatabaseRestarts,
    /// The broker is stopped and started again.
    BrokerRestarts,
    /// An intruder on the broker sends a message.
    Message(Mischief),
}

/// A fault of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Astray {
    Late,
    Lost,
    Doubled,
}

/// A connection of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leg {
    Front,
    Database,
    Broker,
}

/// A fault of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    Cut,
    Deaf,
    Slow,
}

#[derive(Clone, Copy)]
enum Kind {
    Device,
    Report,
    SwitchedOn,
    Killed,
    Halted,
    DiskFull,
    ClockSet,
    MachineApart,
    EngineApart,
    Way,
    Message,
}

const ON_STANDALONE: &[(u64, Kind)] = &[
    (58, Kind::Device),
    (14, Kind::Report),
    (3, Kind::SwitchedOn),
    (6, Kind::Killed),
    (3, Kind::Halted),
    (4, Kind::DiskFull),
    (2, Kind::ClockSet),
    (10, Kind::Way),
];
const ON_DISTRIBUTED: &[(u64, Kind)] = &[
    (34, Kind::Device),
    (10, Kind::Report),
    (3, Kind::SwitchedOn),
    (14, Kind::Killed),
    (6, Kind::Halted),
    (1, Kind::ClockSet),
    (2, Kind::MachineApart),
    (3, Kind::EngineApart),
    (13, Kind::Way),
    (14, Kind::Message),
];

/// All faults of a campaign, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The faults.
    pub faults: Vec<Fault>,
    processes: &'static [&'static str],
}

impl Script {
    /// The script of a campaign.
    #[must_use]
    pub fn of(options: &Options) -> Self {
        let mut dice = Dice::of(options.seed, 1);
        let processes = match options.ground {
            Ground::Standalone => STANDALONE,
            Ground::Distributed => DISTRIBUTED,
        };
        let mut moments: Vec<_> = (0..options.faults)
            .map(|_| dice.between(0, options.seconds * 1000))
            .collect();
        moments.sort_unstable();
        let mut before_ms = 0;
        let fault = |at_ms| {
            let span = before_ms..at_ms;
            before_ms = at_ms;
            Fault {
                at_ms,
                lasts_ms: dice.between(200, 4_000),
                what: what(options, &span, processes.len(), &mut dice),
            }
        };
        Self {
            faults: moments.into_iter().map(fault).collect(),
            processes,
        }
    }

    /// The line of a fault.
    #[must_use]
    pub fn line(&self, fault: &Fault) -> String {
        Line {
            fault,
            processes: self.processes,
        }
        .to_string()
    }
}

/// Whether the middle of a period is between two faults.
fn begins(period_ms: u64, span: &Range<u64>) -> bool {
    let of = |ms: u64| (ms + period_ms / 2) / period_ms;
    of(span.start) < of(span.end)
}

fn what(options: &Options, span: &Range<u64>, processes: usize, dice: &mut Dice) -> What {
    if options.ghosts {
        return What::Report(any(options.hosts, dice), Astray::Doubled);
    }
    let is_distributed = options.ground == Ground::Distributed;
    if is_distributed && begins(BROKER_RESTARTS_EVERY_MS, span) {
        return What::BrokerRestarts;
    }
    if is_distributed && begins(DATABASE_RESTARTS_EVERY_MS, span) {
        return What::DatabaseRestarts;
    }
    let weights = if is_distributed {
        ON_DISTRIBUTED
    } else {
        ON_STANDALONE
    };
    let kind = dice.weighted(weights).unwrap_or(Kind::Device);
    of_kind(kind, options, processes, dice)
}

fn of_kind(kind: Kind, options: &Options, processes: usize, dice: &mut Dice) -> What {
    let host = any(options.hosts, dice);
    let process = any(processes, dice);
    match kind {
        Kind::Device => device(host, dice),
        Kind::Report => What::Report(host, *dice.pick(&[Astray::Late, Astray::Lost, Astray::Doubled])),
        Kind::SwitchedOn => What::SwitchedOn(host),
        Kind::Killed => What::Killed(process),
        Kind::Halted => What::Halted(process),
        Kind::DiskFull => What::DiskFull(process),
        Kind::ClockSet => What::ClockSet(step(dice)),
        Kind::MachineApart => What::MachineApart(process, off(60_000, dice)),
        // The allowed difference of engines' clocks.
        Kind::EngineApart => What::EngineApart(*dice.pick(&[0, 1, 2, 3]), off(200, dice)),
        Kind::Way => way(process, options.ground, dice),
        Kind::Message => What::Message(*dice.pick(&[
            Mischief::Doubled,
            Mischief::Late,
            Mischief::Forged,
            Mischief::Misled,
        ])),
    }
}

/// Only hosts for which power does not suffice get a ghost.
fn device(host: usize, dice: &mut Dice) -> What {
    let resources = [
        Resource::Power,
        Resource::Power,
        Resource::Storage,
        Resource::Network,
    ];
    let resource = *dice.pick(&resources);
    let kinds = [
        FaultKind::Lie,
        FaultKind::Slow,
        FaultKind::Silent,
        FaultKind::Refuse,
    ];
    if resource == Resource::Power && needs_more_than_power(host) && dice.one_of(40) {
        return What::Device(host, resource, FaultKind::Ghost);
    }
    What::Device(host, resource, *dice.pick(&kinds))
}

/// Whether the host's plan requires more than power.
pub(crate) fn needs_more_than_power(host: usize) -> bool {
    host % 2 == 1
}

fn way(process: usize, ground: Ground, dice: &mut Dice) -> What {
    let legs: &[Leg] = match (ground, process) {
        (Ground::Standalone, _) => &[Leg::Front],
        (Ground::Distributed, 0 | 1) => &[Leg::Front, Leg::Database, Leg::Broker],
        (Ground::Distributed, 2 | 3) => &[Leg::Database, Leg::Broker],
        (Ground::Distributed, _) => &[Leg::Broker],
    };
    let trouble = [Trouble::Cut, Trouble::Deaf, Trouble::Slow];
    What::Way(process, *dice.pick(legs), *dice.pick(&trouble))
}

/// How far a clock is set: mostly seconds or minutes, sometimes hours.
fn step(dice: &mut Dice) -> i64 {
    let furthest = if dice.one_of(25) { 7_200_000 } else { 120_000 };
    off(furthest, dice)
}

fn off(furthest_ms: u64, dice: &mut Dice) -> i64 {
    let ms = i64::try_from(dice.between(1, furthest_ms)).unwrap_or(0);
    if dice.one_of(50) { -ms } else { ms }
}

fn any(of: usize, dice: &mut Dice) -> usize {
    usize::try_from(dice.between(0, of as u64 - 1)).unwrap_or(0)
}

/// The delay of a slow device, which depends on its fault's duration.
pub(crate) fn slow_ms(fault: &Fault) -> u64 {
    300 + fault.lasts_ms % (SLOWEST_MS - 300)
}

/// The name of a host.
pub(crate) fn host_name(host: usize) -> String {
    format!("h{}", host + 1)
}

struct Line<'a> {
    fault: &'a Fault,
    processes: &'static [&'static str],
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let process = |number: &usize| self.processes.get(*number).copied().unwrap_or_default();
        let lasts = self.fault.lasts_ms;
        match &self.fault.what {
            What::Device(host, resource, kind) => {
                let (name, resource) = (host_name(*host), resource.as_str());
                write!(f, "device {resource} of {name}: {kind:?} for {lasts} ms")
            }
            What::Report(host, astray) => {
                write!(f, "reports of {}: {astray:?} for {lasts} ms", host_name(*host))
            }
            What::SwitchedOn(host) => write!(f, "{} is switched on without Ringfence", host_name(*host)),
            What::Killed(number) => write!(
                f,
                "{} is killed, and starts again after {lasts} ms",
                process(number)
            ),
            What::Halted(number) => write!(f, "{} is halted for {lasts} ms", process(number)),
            What::DiskFull(number) => write!(f, "the disk of {} is full for {lasts} ms", process(number)),
            What::ClockSet(by) => write!(f, "the site's clock is set by {by} ms"),
            What::MachineApart(number, by) => {
                write!(f, "the clock of {}'s machine is {by} ms off", process(number))
            }
            What::EngineApart(number, by) => {
                write!(f, "the database's clock for {} is {by} ms off", process(number))
            }
            What::Way(number, leg, trouble) => {
                write!(
                    f,
                    "way {leg:?} of {}: {trouble:?} for {lasts} ms",
                    process(number)
                )
            }
            What::DatabaseRestarts => write!(f, "the database is killed, and starts again"),
            What::BrokerRestarts => write!(f, "the broker restarts"),
            What::Message(mischief) => write!(f, "message: {mischief:?}"),
        }
    }
}

impl Fault {
    /// The kind of fault, for the counts.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match &self.what {
            What::Device(..) => "devices",
            What::Report(..) => "reports",
            What::SwitchedOn(..) => "switched on by hand",
            What::Killed(..) => "kill -9",
            What::Halted(..) => "halted",
            What::DiskFull(..) => "disk full",
            What::ClockSet(..) => "clock set",
            What::MachineApart(..) | What::EngineApart(..) => "clocks apart",
            What::Way(..) => "cut off",
            What::DatabaseRestarts | What::BrokerRestarts => "peers restarted",
            What::Message(..) => "messages",
        }
    }
}
