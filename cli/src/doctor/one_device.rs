//! Hosts whose methods use one device: the device's proof for one host would count for each of them.

use std::collections::BTreeMap;

use ringfence_core::{Catalogue, FrozenPlan, target_key};

use super::Report;
use super::names::some_of;

/// How many such devices are named one by one.
const TOLD: usize = 5;

/// A method, and the hosts for which it uses one device.
#[derive(Default)]
struct Sharing<'a> {
    method: &'a str,
    hosts: Vec<String>,
}

/// Reports every method whose parameters are identical for several hosts, and returns those hosts, each with such a method.
pub(super) fn look<'a>(
    drivers: &Catalogue,
    plans: impl Iterator<Item = (&'a str, &'a FrozenPlan)>,
    report: &mut Report,
) -> BTreeMap<String, String> {
    let mut targets: BTreeMap<String, Sharing<'a>> = BTreeMap::new();
    for (host, plan) in plans {
        for method in plan.methods() {
            let sharing = targets.entry(target_key(drivers, method)).or_default();
            sharing.method = &method.name;
            if sharing.hosts.last().is_none_or(|last| last != host) {
                sharing.hosts.push(host.to_owned());
            }
        }
    }
    let shared: Vec<_> = targets
        .values()
        .filter(|sharing| sharing.hosts.len() > 1)
        .collect();
    for Sharing { method, hosts } in shared.iter().take(TOLD) {
        report.failure(
            "plans",
            format!(
                "{method} uses one device for {}: its proof for one host would count for each of them",
                some_of(hosts)
            ),
            "give each host its own parameters, by ${host.name} in the method or METHOD.KEY of the host; or plan for one host",
        );
    }
    if shared.len() > TOLD {
        report.failure(
            "plans",
            format!("{} more devices are used for several hosts", shared.len() - TOLD),
            "mend the first ones, then: ringfence doctor",
        );
    }
    let sharing = shared.iter().flat_map(|sharing| {
        sharing
            .hosts
            .iter()
            .map(|host| (host.clone(), sharing.method.to_owned()))
    });
    sharing.collect()
}
