//! What is wrong with a piece of configuration, said so that its author can mend it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One fault in one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Where: a path such as `fence.stages[0].tasks[1].kind`.
    pub field: String,
    /// What is wrong with the value, and what is allowed.
    pub detail: String,
}

impl Problem {
    /// A fault in `field`.
    pub fn new(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            detail: detail.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.detail)
    }
}

/// All the faults that were found; never empty where it is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// Notes one more fault.
    pub fn add(&mut self, field: impl Into<String>, detail: impl Into<String>) {
        self.0.push(Problem::new(field, detail));
    }

    /// `Ok` if nothing was found.
    pub fn into_result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}
