//! The verdict on each host: whether it can be fenced now without a person, and by what.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{FrozenMethod, FrozenPlan, ProofKind, Resource};

use super::names::some_of;

/// The resources and zones that a worker serves.
pub(super) type Served = BTreeSet<(Resource, String)>;

/// Devices that do not tell their state: a method and a host. Without a host the device is silent for every host.
#[derive(Default)]
pub(super) struct Silences(BTreeSet<(String, Option<String>)>);

impl Silences {
    /// The device of a method does not tell its state.
    pub fn note(&mut self, method: &str, host: Option<&str>) {
        self.0.insert((method.to_owned(), host.map(ToOwned::to_owned)));
    }

    /// The device of a method tells its state, whatever it did before.
    pub fn heard(&mut self, method: &str, host: Option<&str>) {
        self.0.remove(&(method.to_owned(), host.map(ToOwned::to_owned)));
    }

    fn is_silent(&self, method: &str, host: &str) -> bool {
        let is_key = |host: Option<&str>| self.0.contains(&(method.to_owned(), host.map(ToOwned::to_owned)));
        is_key(Some(host)) || is_key(None)
    }
}

/// The verdict on a host; hosts with one verdict are shown together, those that cannot be fenced first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Verdict {
    /// Whether the host can be fenced without a person, as far as is known.
    pub can_be_fenced: bool,
    /// The sufficient sets that can be completed.
    pub by: Vec<String>,
    /// The methods that cannot be counted on, and why.
    pub not_by: Vec<String>,
}

/// Hosts with one verdict.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// The hosts' names.
    pub hosts: Vec<String>,
}

impl Judged {
    /// The names of the hosts, or the first names and how many more there are.
    #[must_use]
    pub fn some(&self) -> String {
        some_of(&self.hosts)
    }
}

impl Verdict {
    /// The verdict on a host that only a person can confirm.
    pub(super) fn none(why: impl Into<String>) -> Self {
        Self {
            can_be_fenced: false,
            by: Vec::new(),
            not_by: vec![why.into()],
        }
    }

    /// The verdict on a host with a plan that can be carried out.
    pub(super) fn new(
        (host, plan, has_watchdog): (&str, &FrozenPlan, bool),
        served: &Served,
        silences: &Silences,
    ) -> Self {
        let hindrance = |method: &FrozenMethod| hindrance(method, host, served, silences);
        let sets = plan.sets_within_reach(has_watchdog, |method| hindrance(method).is_none());
        let mut not_by: Vec<String> = plan.methods().filter_map(hindrance).collect();
        not_by.sort();
        not_by.dedup();
        if sets.is_empty() && not_by.is_empty() {
            not_by.push(format!("plan {} has no tasks that prove a fence", plan.name));
        }
        Self {
            can_be_fenced: !sets.is_empty(),
            by: sets.iter().map(in_words).collect(),
            not_by,
        }
    }
}

/// Why a method cannot be counted on for this host.
fn hindrance(method: &FrozenMethod, host: &str, served: &Served, silences: &Silences) -> Option<String> {
    let (name, zone, resource) = (&method.name, &method.zone, method.resource);
    if !method.can_prove {
        return Some(format!("{name}: its readings prove nothing"));
    }
    if !served.contains(&(resource, zone.clone())) {
        return Some(format!(
            "{name}: no worker serves {} in {zone}",
            resource.as_str()
        ));
    }
    silences
        .is_silent(name, host)
        .then(|| format!("{name}: its device does not tell its state"))
}

/// A sufficient set with the methods that would complete it.
fn in_words(set: &BTreeMap<ProofKind, Vec<&FrozenMethod>>) -> String {
    let proof = |(kind, methods): (&ProofKind, &Vec<&FrozenMethod>)| {
        let mut names: Vec<&str> = methods.iter().map(|method| method.name.as_str()).collect();
        names.dedup();
        if names.is_empty() {
            kind.as_str().to_owned()
        } else {
            format!("{} by {}", kind.as_str(), names.join(" and "))
        }
    };
    set.iter().map(proof).collect::<Vec<_>>().join(", ")
}
