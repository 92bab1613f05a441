//! The clocks of the machines: one site time, which can be set, and a difference for each machine.
//!
//! A program gets its time from `libfaketime`, which reads the difference from a file. Durations stay true.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, TimeDelta, Utc};

use crate::error::CampaignError;

/// The difference of the site's time from this machine's.
#[derive(Default)]
pub struct SiteClock {
    off_ms: AtomicI64,
}

impl SiteClock {
    /// The site's time, for the monitor.
    pub fn now(&self) -> DateTime<Utc> {
        ringfence_tests::now() + TimeDelta::milliseconds(self.off_ms())
    }

    /// The difference in milliseconds.
    pub fn off_ms(&self) -> i64 {
        self.off_ms.load(Ordering::Relaxed)
    }

    /// Sets the site's time forward by this, or back.
    pub fn step(&self, by_ms: i64) {
        self.off_ms.fetch_add(by_ms, Ordering::Relaxed);
    }
}

/// The clock of one program's machine.
pub struct MachineClock {
    file: PathBuf,
    /// The machine's difference from the site's time.
    apart_ms: AtomicI64,
}

impl MachineClock {
    /// A clock without a difference.
    pub fn new(file: PathBuf) -> Self {
        Self {
            file,
            apart_ms: AtomicI64::new(0),
        }
    }

    /// The variables that give a program this clock.
    pub fn variables(&self, library: &Path) -> Vec<(String, String)> {
        let variables = [
            ("LD_PRELOAD", library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.display().to_string()),
            ("FAKETIME_CACHE_DURATION", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("FAKETIME_DISABLE_SHM", "1".to_owned()),
        ];
        variables.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    /// Sets the machine's difference from the site's time.
    pub fn set_apart(&self, ms: i64) {
        self.apart_ms.store(ms, Ordering::Relaxed);
    }

    /// Follows the site's time.
    pub fn follow(&self, site: &SiteClock) -> Result<(), CampaignError> {
        let off_ms = site.off_ms() + self.apart_ms.load(Ordering::Relaxed);
        let sign = if off_ms < 0 { '-' } else { '+' };
        let (seconds, rest) = (off_ms.unsigned_abs() / 1000, off_ms.unsigned_abs() % 1000);
        let cannot = || CampaignError::system(format!("set the clock in {}", self.file.display()));
        let beside = self.file.with_extension("new");
        std::fs::write(&beside, format!("{sign}{seconds}.{rest:03}\n")).map_err(cannot())?;
        std::fs::rename(&beside, &self.file).map_err(cannot())
    }
}

/// The path of `libfaketime`.
pub fn library() -> Result<PathBuf, CampaignError> {
    let folders = ["x86_64-linux-gnu", "aarch64-linux-gnu"];
    let path = |folder: &str| PathBuf::from(format!("/usr/lib/{folder}/faketime/libfaketime.so.1"));
    let found = folders.into_iter().map(path).find(|path| path.is_file());
    found.ok_or(CampaignError::Missing {
        what: "libfaketime.so.1",
        package: "libfaketime",
    })
}
