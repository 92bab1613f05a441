//! The result of a campaign.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A broken invariant.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The kind of violation.
    pub what: String,
    /// The host.
    pub host: String,
    /// The API's answer, and the physical state.
    pub detail: String,
    /// The last faults before the violation.
    pub faults: Vec<String>,
    /// The last requests, reports and actions of the host.
    pub of_host: Vec<String>,
}

/// Counts.
#[derive(Debug, Default)]
pub struct Figures {
    /// Requests of people.
    pub requests: AtomicU64,
    /// Accepted requests.
    pub taken: AtomicU64,
    /// Accepted reports of monitors.
    pub reports: AtomicU64,
    /// Deaths of hosts.
    pub deaths: AtomicU64,
    /// Times that the judge saw a host turn FENCED.
    pub fenced: AtomicU64,
    /// Times that the judge saw a host turn UNFENCED.
    pub unfenced: AtomicU64,
    /// Gates that the judge has read.
    pub gates: AtomicU64,
    /// Open evacuate gates that the judge has read.
    pub open: AtomicU64,
}

/// Increases a count by one.
pub fn count(figure: &AtomicU64) {
    figure.fetch_add(1, Ordering::Relaxed);
}

/// The result of a campaign.
#[derive(Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// The command that repeats the campaign.
    pub again: String,
    /// Faults that took effect, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// The duration in seconds.
    pub seconds: u64,
    /// Counts.
    pub figures: Arc<Figures>,
    /// Operations, by kind and status.
    pub operations: BTreeMap<String, u64>,
    /// The number of writes of all hosts.
    pub writes: u64,
    /// The violations.
    pub violations: Vec<Violation>,
    /// The folder of the logs, if they were kept.
    pub kept: Option<PathBuf>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        let figures = &self.figures;
        writeln!(f, "seed {}, {} s: {}", self.seed, self.seconds, self.again)?;
        let all: u64 = self.faults.values().sum();
        let kinds: Vec<_> = self
            .faults
            .iter()
            .map(|(kind, n)| format!("{kind} {n}"))
            .collect();
        writeln!(f, "{all} faults: {}", kinds.join(", "))?;
        let operations: Vec<_> = self
            .operations
            .iter()
            .map(|(kind, n)| format!("{kind} {n}"))
            .collect();
        writeln!(f, "operations: {}", operations.join(", "))?;
        writeln!(
            f,
            "{} requests, {} of them taken; {} reports taken; {} hosts died; {} writes",
            of(&figures.requests),
            of(&figures.taken),
            of(&figures.reports),
            of(&figures.deaths),
            self.writes
        )?;
        writeln!(
            f,
            "judged: {} times FENCED, {} times UNFENCED, {} gates read, {} of them open to evacuate",
            of(&figures.fenced),
            of(&figures.unfenced),
            of(&figures.gates),
            of(&figures.open)
        )?;
        for violation in &self.violations {
            writeln!(f, "VIOLATION (seed {}): {violation}", self.seed)?;
        }
        if let Some(kept) = &self.kept {
            writeln!(f, "the logs are in {}", kept.display())?;
        }
        if self.violations.is_empty() {
            write!(f, "no violation")
        } else {
            write!(f, "{} violations", self.violations.len())
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} of {}", self.what, self.host)?;
        writeln!(f, "  {}", self.detail)?;
        writeln!(f, "  the last faults:")?;
        for line in &self.faults {
            writeln!(f, "    {line}")?;
        }
        writeln!(f, "  {}:", self.host)?;
        for line in &self.of_host {
            writeln!(f, "    {line}")?;
        }
        Ok(())
    }
}
