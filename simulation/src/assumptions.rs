//! What comes from outside of Ringfence, and is assumed.

use std::collections::BTreeSet;

use chrono::TimeDelta;

/// What is assumed of devices, platforms and those who are asked before a fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumptions {
    /// How long each task takes from the claim of a worker to its result.
    pub takes: TimeDelta,
    /// Methods by name whose devices do not show what was asked of them.
    pub failing: BTreeSet<String>,
    /// Methods by name whose Ceph or query holds every fence; all others allow it.
    pub holding: BTreeSet<String>,
}

impl Default for Assumptions {
    fn default() -> Self {
        Self {
            takes: TimeDelta::seconds(5),
            failing: BTreeSet::new(),
            holding: BTreeSet::new(),
        }
    }
}

impl Assumptions {
    /// In words, a sentence each.
    #[must_use]
    pub fn told(&self) -> Vec<String> {
        let takes = self.takes.num_seconds();
        let mut told = vec![if self.failing.is_empty() {
            format!("every task is done after {takes} s, and is read back as done")
        } else {
            let failing = names(&self.failing);
            format!(
                "every task is done after {takes} s, and is read back as done, except those of {failing}: what their devices show is not known"
            )
        }];
        told.push(if self.holding.is_empty() {
            "every Ceph and every query that a segment asks allows a fence".to_owned()
        } else {
            let holding = names(&self.holding);
            format!("every Ceph and every query that a segment asks allows a fence, except {holding}")
        });
        told.push("a host that falls silent is seen as UNREACHABLE at once, by all its sources".to_owned());
        told.push("workloads are not simulated: no evacuation begins".to_owned());
        told
    }
}

fn names(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}
