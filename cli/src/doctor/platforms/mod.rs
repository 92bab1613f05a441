//! Platforms: whether each answers and allows Ringfence its calls, and whether its hosts are those of Ringfence.

mod records;

use std::sync::Arc;

use ringfence_backends::{Platform, Preflight};

use super::Report;
use super::hosts::Site;
use crate::clock::now;
use crate::config::Settings;
use crate::platforms;

pub(super) use records::compare;

const PART: &str = "platforms";

/// A platform that has answered, and the hosts that it names.
pub(super) struct Seen {
    platform: Arc<dyn Platform>,
    hosts: Vec<String>,
}

/// Checks every platform of the configuration, and returns those that have answered.
pub(super) async fn look(settings: &Settings, report: &mut Report) -> Vec<Seen> {
    let mut seen = Vec::new();
    let platforms = match platforms::unchecked(settings) {
        Ok(platforms) => platforms,
        Err(error) => {
            report.failure(PART, error.to_string(), "mend the configuration".to_owned());
            return seen;
        }
    };
    for platform in platforms {
        tell(platform.preflight(now()).await, report);
        if let Ok(poll) = platform.look().await {
            let hosts = poll.hosts.into_iter().map(|sign| sign.host);
            seen.push(Seen {
                hosts: hosts.collect(),
                platform,
            });
        }
    }
    seen
}

/// Tries, on each platform that has answered, the calls of its services' drivers that plans fence with. Other checks report a platform that
/// does not answer, or that other services speak to.
pub(super) async fn try_drivers(seen: &[Seen], site: &Site, report: &mut Report) {
    for (name, driver) in site.cloud_drivers() {
        let mut platforms = seen.iter().map(|seen| &seen.platform);
        if let Some(platform) = platforms.find(|platform| platform.name() == name) {
            tell(platform.preflight_fencing(&driver).await, report);
        }
    }
}

fn tell(found: Vec<Preflight>, report: &mut Report) {
    for found in found {
        match found {
            Preflight::Good(found) => report.good(PART, found),
            Preflight::Warning(found, remedy) => report.warning(PART, found, remedy),
            Preflight::Failure(found, remedy) => report.failure(PART, found, remedy),
        }
    }
}
