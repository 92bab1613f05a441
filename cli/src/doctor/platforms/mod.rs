//! Platforms: whether each answers and allows Ringfence its calls, and whether its hosts are those of Ringfence.

mod records;

use std::sync::Arc;
use std::time::Duration;

use ringfence_backends::{Platform, Preflight};
use ringfence_core::{Backend, Poll};
use tokio::time::{Instant, sleep};

use super::Report;
use super::hosts::Site;
use crate::clock::now;
use crate::config::Settings;
use crate::platforms;

pub(super) use records::compare;

const PART: &str = "platforms";
/// How long a cluster may take to list its nodes.
const LISTED_WITHIN: Duration = Duration::from_secs(5);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

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
        if let Some(poll) = poll(&*platform).await {
            let hosts = poll.hosts.into_iter().map(|sign| sign.host);
            seen.push(Seen {
                hosts: hosts.collect(),
                platform,
            });
        }
    }
    seen
}

/// The hosts of a platform. One that is watched has to be listed first.
async fn poll(platform: &dyn Platform) -> Option<Poll> {
    let given_up_at = Instant::now() + LISTED_WITHIN;
    loop {
        match platform.look().await {
            Ok(poll) => return Some(poll),
            Err(_) if platform.kind() == Backend::Kubernetes && Instant::now() < given_up_at => {
                sleep(LOOK_AGAIN_AFTER).await;
            }
            Err(_) => return None,
        }
    }
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
