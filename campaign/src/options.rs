//! What a campaign is asked for.

use std::path::PathBuf;

/// Where it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// SQLite, everything in one process.
    Standalone,
    /// PostgreSQL and RabbitMQ, two processes of each service.
    Distributed,
}

impl Ground {
    /// Its name on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Standalone => "standalone",
            Self::Distributed => "distributed",
        }
    }
}

/// A campaign.
#[derive(Clone, Debug)]
pub struct Options {
    /// Faults in the script, 1 to 100,000.
    pub faults: usize,
    /// The script is a function of this, of the number of faults, of the hosts, of the seconds and of the ground.
    pub seed: u64,
    /// Where.
    pub ground: Ground,
    /// Simulated hosts, 2 to 200.
    pub hosts: usize,
    /// Seconds in which the faults happen.
    pub seconds: u64,
    /// Where the logs are kept: after a violation, or always.
    pub kept: PathBuf,
    /// Whether they are kept without a violation.
    pub keep: bool,
    /// Lets power alone suffice while every power device is a ghost: this has to end in a violation.
    pub ghosts: bool,
}

/// Faults in a second, unless the seconds are given.
const FAULTS_PER_SECOND: usize = 5;

impl Options {
    /// So many faults, with the usual number of hosts and in the usual time.
    #[must_use]
    pub fn new(ground: Ground, faults: usize, seed: u64) -> Self {
        let seconds = faults.div_ceil(FAULTS_PER_SECOND).max(10);
        Self {
            faults,
            seed,
            ground,
            hosts: 16,
            seconds: seconds as u64,
            kept: std::env::temp_dir(),
            keep: false,
            ghosts: false,
        }
    }
}
