//! What an explanation is made from, beside the host.

use std::collections::BTreeMap;

use crate::{LastCheck, Neighbourhood, Opinions, ResolvedPlan, SufficientSet};

/// What is known beside the host itself.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The plan that applies to the host; `None` if there is none.
    pub plan: Option<ResolvedPlan>,
    /// The proofs that make the host FENCED.
    pub sufficient_sets: Vec<SufficientSet>,
    /// What was found out about the methods of the plan, by name.
    pub methods: BTreeMap<String, MethodFacts>,
    /// How the hosts of its segment stand.
    pub around: Neighbourhood,
    /// What others were asked.
    pub opinions: Opinions,
}

/// What was found out about a method, for one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MethodFacts {
    /// What its device last answered; `None` before the first answer, and where devices are not asked.
    pub check: Option<LastCheck>,
    /// Why its device is not the host's alone, if it is not.
    pub shared: Option<String>,
    /// Whether a worker takes tasks for its resource in its zone; `None` if that is not known.
    pub is_served: Option<bool>,
}
