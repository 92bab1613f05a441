//! Clouds: whether each can be asked and lets us do our work, and whether it and we have the same hosts.

mod drivers;
mod records;

use std::os::unix::fs::PermissionsExt;

use chrono::TimeDelta;
use ringfence_backends::BackendError;
use ringfence_backends::openstack::{Cloud, CloudSettings, ComputeService};

use super::Report;
use crate::clock::now;
use crate::config::Settings;
use crate::error::error_chain;
use crate::services::parts;

pub(super) use drivers::try_drivers;
pub(super) use records::compare;

const PART: &str = "clouds";
/// Nova's clock is told in whole seconds, and an answer takes its time.
const SKEW: TimeDelta = TimeDelta::seconds(10);

/// A cloud that has answered, and the hosts that it names.
pub(super) struct Seen {
    cloud: Cloud,
    hosts: Vec<String>,
}

/// Looks at every cloud of the configuration, and gives those that have answered.
pub(super) async fn look(settings: &Settings, report: &mut Report) -> Vec<Seen> {
    let mut seen = Vec::new();
    for cloud in parts::cloud_settings(settings) {
        seen.extend(look_at(&cloud, report).await);
    }
    seen
}

async fn look_at(settings: &CloudSettings, report: &mut Report) -> Option<Seen> {
    judge_file(settings, report);
    if let Err(error) = settings.check() {
        fail(&error, "keystone", report);
        return None;
    }
    let cloud = Cloud::new(settings.clone());
    if let Err(error) = cloud.sign_in().await {
        fail(&error, "keystone", report);
        return None;
    }
    match cloud.nova_versions().await {
        Ok(versions) => report.good(
            PART,
            format!(
                "{}: Nova has versions {} to {}, and {} is used",
                settings.name, versions.oldest, versions.newest, versions.used
            ),
        ),
        Err(error) => {
            fail(&error, "nova", report);
            return None;
        }
    }
    judge_rights(&cloud, report).await;
    judge_clock(&cloud, report).await;
    let services = cloud.services().await.ok()?;
    judge_services(&settings.name, &services, report);
    let computes = services.into_iter().filter(is_compute);
    let hosts = computes.map(|service| service.host).collect();
    Some(Seen { cloud, hosts })
}

fn is_compute(service: &ComputeService) -> bool {
    service.binary == "nova-compute"
}

fn judge_file(settings: &CloudSettings, report: &mut Report) {
    let Some(path) = settings.path() else { return };
    // What cannot be read is told where it is read.
    let Ok(metadata) = std::fs::metadata(&path) else {
        return;
    };
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        report.warning(
            PART,
            format!("{} has mode {mode:04o}, and it holds a password", path.display()),
            "chmod 600, and give it to the user of the service",
        );
    }
}

/// What has to be mended depends on who has failed, and how.
fn fail(error: &BackendError, service: &str, report: &mut Report) {
    let remedy = match (error, service) {
        (BackendError::Settings { .. }, _) => {
            "mend openstack.clouds, openstack.clouds_file or the entry in that file"
        }
        (BackendError::Denied { .. }, "keystone") => "mend user, password, project or domains of the entry",
        (BackendError::Denied { .. }, _) => "give the entry's user the role admin in the entry's project",
        (BackendError::NotFound { .. }, "keystone") => "mend auth_url of the entry; it ends in /v3",
        (BackendError::NoEndpoint { .. } | BackendError::NotFound { .. }, _) => {
            "mend region_name or interface of the entry, or the service catalogue of Keystone"
        }
        (BackendError::Version { .. }, _) => "Nova has to be of the release Stein or later",
        (BackendError::Away { .. } | BackendError::Late { .. }, "keystone") => {
            "start Keystone, or mend auth_url of the entry or the way there"
        }
        (BackendError::Away { .. } | BackendError::Late { .. }, _) => {
            "start the service, or mend its address in the service catalogue or the way there"
        }
        (BackendError::Refused { .. } | BackendError::Unreadable { .. }, _) => "see the service's own log",
    };
    report.failure(PART, error_chain(error), remedy);
}

async fn judge_rights(cloud: &Cloud, report: &mut Report) {
    let failing = cloud.failing_calls().await;
    if failing.is_empty() {
        report.good(
            PART,
            format!(
                "{}: all calls are allowed that can be tried without changing anything",
                cloud.name()
            ),
        );
    }
    for (what, error) in failing {
        let remedy = match &error {
            BackendError::Denied { .. } => {
                "openstack role add --user USER --project PROJECT admin, with the entry's user and project"
            }
            _ => "see the service's own log",
        };
        report.failure(PART, format!("{what}: {}", error_chain(&error)), remedy);
    }
}

async fn judge_clock(cloud: &Cloud, report: &mut Report) {
    // That it does not answer, or lets nobody in, is told already.
    let Ok(Some(theirs)) = cloud.nova_time().await else {
        return;
    };
    let ahead = theirs - now();
    if ahead.abs() > SKEW {
        report.warning(
            PART,
            format!(
                "{}: Nova's clock is {} s {} this machine's",
                cloud.name(),
                ahead.num_seconds().abs(),
                if ahead > TimeDelta::zero() {
                    "ahead of"
                } else {
                    "behind"
                }
            ),
            "let both follow the same time servers; logs and events are hard to compare until then",
        );
    }
}

fn judge_services(cloud: &str, services: &[ComputeService], report: &mut Report) {
    let computes: Vec<&ComputeService> = services.iter().filter(|s| is_compute(s)).collect();
    let up = computes.iter().filter(|service| service.is_up()).count();
    if computes.is_empty() {
        report.warning(
            PART,
            format!("{cloud}: Nova has no hosts"),
            "look whether this is the right region",
        );
    } else {
        report.good(
            PART,
            format!("{cloud}: Nova has {} hosts; {up} are up", computes.len()),
        );
    }
    let is_heard = |service: &&ComputeService| service.binary == "nova-conductor" && service.is_up();
    if !services.iter().any(|service| is_heard(&service)) {
        report.failure(
            PART,
            format!("{cloud}: no nova-conductor is up; all hosts count as UNKNOWN, and none as UNREACHABLE"),
            "start nova-conductor",
        );
    }
}
