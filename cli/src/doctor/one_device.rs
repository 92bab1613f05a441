//! Hosts that are fenced by one and the same device: what it proves of one of them would be taken for a proof of each.

use std::collections::BTreeMap;

use ringfence_core::{Catalogue, FrozenPlan, target_key};

use super::Report;
use super::hosts::some_of;

/// Such devices that are told one by one.
const TOLD: usize = 5;

/// Who has the same.
#[derive(Default)]
struct Sharing<'a> {
    method: &'a str,
    hosts: Vec<String>,
}

/// Tells of everything that is filled in alike for several hosts, and gives those hosts, each with such a method.
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
                "{method} is the same device for {}: what it proves of one would be taken for a proof of each",
                some_of(hosts)
            ),
            "say what is each host's own, with ${host.name} in the method or METHOD.KEY with the host; or plan for one host",
        );
    }
    if shared.len() > TOLD {
        report.failure(
            "plans",
            format!(
                "{} more devices are the same for several hosts",
                shared.len() - TOLD
            ),
            "mend the first ones and look again",
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
