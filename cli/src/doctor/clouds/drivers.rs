//! Ways to fence that are services of a cloud: whether it lets us use those that methods name.

use ringfence_backends::BackendError;
use ringfence_core::Driver;

use super::{PART, Seen};
use crate::doctor::Report;
use crate::doctor::hosts::Site;
use crate::error::error_chain;

/// Tries, in each cloud that has answered, what the drivers of its services need by which plans fence there.
pub(in crate::doctor) async fn try_drivers(seen: &[Seen], site: &Site, report: &mut Report) {
    for (name, driver) in site.cloud_drivers() {
        let Some(Seen { cloud, .. }) = seen.iter().find(|seen| seen.cloud.name() == name) else {
            // One that does not answer, or is for others to speak to, is told of elsewhere.
            continue;
        };
        let failing = cloud.failing_calls_of(driver).await;
        if failing.is_empty() {
            report.good(
                PART,
                format!("{name}: the driver {driver} is allowed what it needs"),
            );
        }
        for (what, error) in failing {
            let found = format!("the driver {driver} could not {what}: {}", error_chain(&error));
            report.failure(PART, found, remedy(driver, &error));
        }
    }
}

fn remedy(driver: Driver, error: &BackendError) -> &'static str {
    match (error, driver) {
        (BackendError::Denied { .. }, Driver::Cinder) => {
            "openstack role add --user USER --project PROJECT with the roles admin and service, and the entry's user and project"
        }
        (BackendError::Denied { .. }, _) => {
            "openstack role add --user USER --project PROJECT admin, with the entry's user and project"
        }
        (BackendError::Version { .. }, _) => {
            "the driver needs a Nova of the release Xena or later, with version 2.89 of its API"
        }
        (BackendError::NoEndpoint { .. }, _) => {
            "mend region_name or interface of the entry, or the service catalogue; or remove the methods of this driver"
        }
        (BackendError::Away { .. } | BackendError::Late { .. }, _) => {
            "start the service, or mend its address in the service catalogue or the way there"
        }
        _ => "see the service's own log",
    }
}
