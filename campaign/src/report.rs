//! What came of a campaign.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// What must never be, and has been.
#[derive(Clone, Debug)]
pub struct Violation {
    /// What it was.
    pub what: String,
    /// Of which host.
    pub host: String,
    /// What the API said, and what was so.
    pub detail: String,
    /// The last faults before it.
    pub faults: Vec<String>,
    /// What was last asked, reported and done of this host.
    pub of_host: Vec<String>,
}

/// Counts.
#[derive(Debug, Default)]
pub struct Figures {
    /// What people asked for.
    pub requests: AtomicU64,
    /// Of these, those that were taken.
    pub taken: AtomicU64,
    /// Reports of monitors that were taken.
    pub reports: AtomicU64,
    /// Hosts that died.
    pub deaths: AtomicU64,
    /// Moments at which the judge found a host newly FENCED.
    pub fenced: AtomicU64,
    /// Hosts that came back to UNFENCED.
    pub unfenced: AtomicU64,
    /// Gates that the judge has read, and of these the open ones.
    pub gates: AtomicU64,
    /// Evacuate gates that were open.
    pub open: AtomicU64,
}

/// One more of them.
pub fn count(figure: &AtomicU64) {
    figure.fetch_add(1, Ordering::Relaxed);
}

/// What came of a campaign.
#[derive(Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// How it is held again.
    pub again: String,
    /// Faults that happened, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Seconds that all of it took.
    pub seconds: u64,
    /// Counts.
    pub figures: Figures,
    /// Operations, by kind and status.
    pub operations: BTreeMap<String, u64>,
    /// Writes of all hosts.
    pub writes: u64,
    /// What must never be; empty is what one hopes for.
    pub violations: Vec<Violation>,
    /// Where the logs are, if they were kept.
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
