//! The worker inside a standalone service. No queue shows what it serves; its configuration does.

use ringfence_core::Resource;

use super::Report;
use super::hosts::Site;
use super::names::some_of;
use super::verdict::Served;
use crate::config::Settings;

const PART: &str = "zones";

/// Returns what the worker serves.
pub(super) fn look(settings: &Settings, site: &Site, report: &mut Report) -> Served {
    let own = &settings.worker;
    let serves = |(resource, zone): &(Resource, String)| {
        own.resources.contains(resource) && own.zones.iter().any(|served| served == zone)
    };
    let (served, unserved): (Served, Served) = site.needs().into_iter().partition(serves);
    if !unserved.is_empty() {
        let names: Vec<String> = unserved
            .iter()
            .map(|(resource, zone)| format!("{} in {zone}", resource.as_str()))
            .collect();
        report.failure(
            PART,
            format!(
                "the service's own worker does not serve {}, and it has no other",
                some_of(&names)
            ),
            "add what is missing to worker.zones and worker.resources, or mend the zones of hosts and methods",
        );
    } else if !served.is_empty() {
        report.good(PART, "the service's own worker serves all that plans need");
    }
    served
}
