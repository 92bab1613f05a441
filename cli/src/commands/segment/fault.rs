//! What is wrong with a file, and where.

use std::fmt;
use std::path::Path;

/// A line and a column, both from 1; the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub line: u64,
    pub column: u64,
}

impl Place {
    /// Where a file begins.
    pub const FIRST: Self = Self { line: 1, column: 1 };
}

/// What is wrong at a place: the field, its value and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub at: Place,
    pub detail: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.at.line, self.at.column, self.detail)
    }
}

/// All faults of a file, each as `FILE:LINE:COLUMN: ...`.
pub fn told(path: &Path, faults: &[Fault]) -> Vec<String> {
    let line = |fault: &Fault| format!("{}:{fault}", path.display());
    faults.iter().map(line).collect()
}
