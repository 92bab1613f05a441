//! The options of a campaign.

use std::path::PathBuf;

/// The database and bus of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// SQLite, everything in one process.
    Standalone,
    /// PostgreSQL and RabbitMQ, two processes of each service.
    Distributed,
}

impl Ground {
    /// The ground's name on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Standalone => "standalone",
            Self::Distributed => "distributed",
        }
    }
}

/// The options of a campaign.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of faults in the script, 1 to 100,000.
    pub faults: usize,
    /// The seed. The script is a function of the seed, the number of faults, the hosts, the seconds and the ground.
    pub seed: u64,
    /// The ground.
    pub ground: Ground,
    /// Number of simulated hosts, 2 to 200.
    pub hosts: usize,
    /// Seconds in which the faults happen.
    pub seconds: u64,
    /// The folder for logs: after a violation, or always.
    pub kept: PathBuf,
    /// Whether logs are kept without a violation.
    pub keep: bool,
    /// Lets power alone suffice while every power device is a ghost: this has to end in a violation.
    pub ghosts: bool,
}

/// Faults per second, unless the seconds are given.
const FAULTS_PER_SECOND: usize = 5;

impl Options {
    /// A campaign with this number of faults, the usual number of hosts and the usual time.
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
