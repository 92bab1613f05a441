//! What was found.

use super::verdict::Judged;

/// The weight of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// All is well.
    Good,
    /// The part works, but an operator should know of the finding.
    Warning,
    /// Has to be mended: some host cannot be fenced without a person, or its platform is not told of a fence.
    Failure,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The part that was checked.
    pub part: &'static str,
    /// The weight of the finding.
    pub weight: Weight,
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

/// All findings, in the order of the checks.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The findings.
    pub findings: Vec<Finding>,
    /// Whether each host can be fenced, and by what; hosts with one verdict are grouped.
    pub hosts: Vec<Judged>,
}

impl Report {
    pub(super) fn good(&mut self, part: &'static str, found: impl Into<String>) {
        self.add(part, Weight::Good, found.into(), None);
    }

    pub(super) fn warning(
        &mut self,
        part: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.add(part, Weight::Warning, found.into(), Some(remedy.into()));
    }

    pub(super) fn failure(
        &mut self,
        part: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.add(part, Weight::Failure, found.into(), Some(remedy.into()));
    }

    fn add(&mut self, part: &'static str, weight: Weight, found: String, remedy: Option<String>) {
        self.findings.push(Finding {
            part,
            weight,
            found,
            remedy,
        });
    }

    /// How many findings have to be mended.
    #[must_use]
    pub fn failures(&self) -> usize {
        let failed = self.findings.iter().filter(|f| f.weight == Weight::Failure);
        failed.count()
    }
}
