//! Which plan counts for a host.

use std::collections::HashMap;

use crate::{Host, PlanScope};

/// Something for each plan, by what the plan is for. No two plans have one scope.
#[derive(Clone, Debug)]
pub struct ByScope<T> {
    by_host: HashMap<String, T>,
    by_type: HashMap<String, T>,
    default: Option<T>,
}

impl<T> ByScope<T> {
    /// For a host: what its own plan has, else that of its type, else the default.
    #[must_use]
    pub fn for_host(&self, host: &Host) -> Option<&T> {
        let of_type = || self.by_type.get(host.host_type.as_deref()?);
        let own = self.by_host.get(&host.name);
        own.or_else(of_type).or(self.default.as_ref())
    }
}

impl<T> FromIterator<(PlanScope, T)> for ByScope<T> {
    fn from_iter<I: IntoIterator<Item = (PlanScope, T)>>(all: I) -> Self {
        let (mut by_host, mut by_type, mut default) = (HashMap::new(), HashMap::new(), None);
        for (scope, one) in all {
            match scope {
                PlanScope::Host(host) => drop(by_host.insert(host, one)),
                PlanScope::HostType(word) => drop(by_type.insert(word, one)),
                PlanScope::Default => default = Some(one),
            }
        }
        Self {
            by_host,
            by_type,
            default,
        }
    }
}
