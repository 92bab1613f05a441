//! Checks whether a cloud can be used, before it is needed and without changing anything.

use std::os::unix::fs::PermissionsExt;

use chrono::TimeDelta;
use ringfence_core::Timestamp;

use super::{CINDER, Cloud, ComputeService};
use crate::{BackendError, Preflight};

/// Nova's clock has whole seconds, and an answer takes some time.
const SKEW: TimeDelta = TimeDelta::seconds(10);
const SEE_LOG: &str = "see the service's own log";
const GIVE_ADMIN: &str =
    "openstack role add --user USER --project PROJECT admin, with the entry's user and project";
const START_SERVICE: &str =
    "start the service, or mend its address in the service catalogue or the network between";

/// Checks the entry, Keystone and Nova.
pub(super) async fn of(cloud: &Cloud, now: Timestamp) -> Vec<Preflight> {
    let mut found: Vec<Preflight> = file(cloud).into_iter().collect();
    match nova(cloud, now).await {
        Ok(nova) => found.extend(nova),
        Err(failure) => found.push(failure),
    }
    found
}

fn file(cloud: &Cloud) -> Option<Preflight> {
    let path = cloud.settings().path()?;
    // A file that cannot be read is reported where it is read.
    let metadata = std::fs::metadata(&path).ok()?;
    let mode = metadata.permissions().mode() & 0o777;
    let found = format!("{} has mode {mode:04o}, and it holds a password", path.display());
    let remedy = "chmod 600, and give it to the user of the service".to_owned();
    (mode & 0o077 != 0).then_some(Preflight::Warning(found, remedy))
}

async fn nova(cloud: &Cloud, now: Timestamp) -> Result<Vec<Preflight>, Preflight> {
    cloud.settings().check().map_err(|error| of_keystone(&error))?;
    cloud.sign_in().await.map_err(|error| of_keystone(&error))?;
    let versions = cloud.nova_versions().await.map_err(|error| of_nova(&error))?;
    let mut found = vec![Preflight::Good(format!(
        "{}: Nova has versions {} to {}, and {} is used",
        cloud.name(),
        versions.oldest,
        versions.newest,
        versions.used
    ))];
    found.extend(rights(cloud).await);
    found.extend(clock(cloud, now).await);
    found.extend(gate(cloud).await);
    if let Ok(services) = cloud.services().await {
        found.extend(hosts(cloud.name(), &services));
    }
    Ok(found)
}

/// What to mend depends on the service that failed, and on the error.
fn of_keystone(error: &BackendError) -> Preflight {
    let remedy = match error {
        BackendError::Denied { .. } => "mend user, password, project or domains of the entry",
        BackendError::NotFound { .. } => "mend auth_url of the entry; it ends in /v3",
        BackendError::Away { .. } | BackendError::Late { .. } => {
            "start Keystone, or mend auth_url of the entry or the network between"
        }
        other => return of_nova(other),
    };
    Preflight::Failure(told(error), remedy.to_owned())
}

fn of_nova(error: &BackendError) -> Preflight {
    let remedy = match error {
        BackendError::Settings { .. } => {
            "mend openstack.clouds, openstack.clouds_file or the entry in that file"
        }
        BackendError::Denied { .. } => GIVE_ADMIN,
        BackendError::NoEndpoint { .. } | BackendError::NotFound { .. } => {
            "mend region_name or interface of the entry, or the service catalogue of Keystone"
        }
        BackendError::Version { .. } => "Nova has to be of the release Stein or later",
        BackendError::Away { .. } | BackendError::Late { .. } => START_SERVICE,
        BackendError::Refused { .. } | BackendError::Unreadable { .. } => SEE_LOG,
    };
    Preflight::Failure(told(error), remedy.to_owned())
}

async fn rights(cloud: &Cloud) -> Vec<Preflight> {
    let failing = cloud.failing_calls().await;
    if failing.is_empty() {
        return vec![Preflight::Good(format!(
            "{}: all calls are allowed that can be tried without changing anything",
            cloud.name()
        ))];
    }
    let failed = failing.into_iter().map(|(what, error)| {
        let remedy = match &error {
            BackendError::Denied { .. } => GIVE_ADMIN,
            _ => SEE_LOG,
        };
        Preflight::Failure(format!("{what}: {}", told(&error)), remedy.to_owned())
    });
    failed.collect()
}

/// `None` if Nova does not answer, or refuses: another check reports that.
async fn clock(cloud: &Cloud, now: Timestamp) -> Option<Preflight> {
    let ahead = cloud.nova_time().await.ok()?? - now;
    let direction = if ahead > TimeDelta::zero() {
        "ahead of"
    } else {
        "behind"
    };
    let found = format!(
        "{}: Nova's clock is {} s {direction} this machine's",
        cloud.name(),
        ahead.num_seconds().abs()
    );
    let remedy =
        "let both machines follow one set of time servers: logs and events cannot be compared until then";
    (ahead.abs() > SKEW).then(|| Preflight::Warning(found, remedy.to_owned()))
}

/// Whether Nova asks Ringfence before it evacuates and before it places servers, and gets an answer.
async fn gate(cloud: &Cloud) -> Vec<Preflight> {
    let name = cloud.name();
    let Ok(probe) = cloud.gate().await else {
        return Vec::new();
    };
    let Some(probe) = probe else {
        return vec![Preflight::Warning(
            format!(
                "{name}: nova-api does not ask Ringfence; each user with the role admin can evacuate a host that still runs"
            ),
            "install ringfence-nova and configure it: docs/openstack.md, \"What Nova asks\"".to_owned(),
        )];
    };
    let mut found = Vec::new();
    if probe.hook == "answers" && probe.cloud == name {
        found.push(Preflight::Good(format!(
            "{name}: nova-api asks Ringfence before it evacuates"
        )));
    } else if probe.hook == "answers" {
        found.push(Preflight::Failure(
            format!("{name}: nova-api asks Ringfence about the cloud {}", probe.cloud),
            format!("write cloud = {name} to the section [ringfence] of nova.conf"),
        ));
    } else {
        found.push(Preflight::Failure(
            format!(
                "{name}: nova-api has no answer of Ringfence's scheduler hook: {}",
                probe.hook
            ),
            "start the hook, or mend urls, token_file and ca_file in the section [ringfence] of nova.conf"
                .to_owned(),
        ));
    }
    if probe.filter == "not enabled" {
        found.push(Preflight::Warning(
            format!("{name}: the nova.conf of nova-api does not enable RingfenceFilter; Nova may place servers on hosts that are being fenced"),
            "add RingfenceFilter to enabled_filters in the section [filter_scheduler], also of nova-scheduler".to_owned(),
        ));
    }
    found
}

fn hosts(cloud: &str, services: &[ComputeService]) -> Vec<Preflight> {
    let computes: Vec<&ComputeService> = services.iter().filter(|s| s.binary == "nova-compute").collect();
    let up = computes.iter().filter(|service| service.is_up()).count();
    let mut found = vec![if computes.is_empty() {
        let remedy = "look whether this is the right region".to_owned();
        Preflight::Warning(format!("{cloud}: Nova has no hosts"), remedy)
    } else {
        Preflight::Good(format!("{cloud}: Nova has {} hosts; {up} are up", computes.len()))
    }];
    let mut conductors = services
        .iter()
        .filter(|service| service.binary == "nova-conductor");
    if !conductors.any(ComputeService::is_up) {
        found.push(Preflight::Failure(
            format!("{cloud}: no nova-conductor is up; all hosts count as UNKNOWN, and none as UNREACHABLE"),
            "start nova-conductor".to_owned(),
        ));
    }
    found
}

/// Whether the cloud allows the calls of a driver that uses its services.
pub(super) async fn fencing(cloud: &Cloud, driver: &str) -> Vec<Preflight> {
    let failing = cloud.failing_calls_of(driver).await;
    if failing.is_empty() {
        return vec![Preflight::Good(format!(
            "{}: the driver {driver} is allowed what it needs",
            cloud.name()
        ))];
    }
    let failed = failing.into_iter().map(|(what, error)| {
        let found = format!("the driver {driver} could not {what}: {}", told(&error));
        Preflight::Failure(found, remedy_of(driver, &error).to_owned())
    });
    failed.collect()
}

fn remedy_of(driver: &str, error: &BackendError) -> &'static str {
    match (error, driver) {
        (BackendError::Denied { .. }, CINDER) => {
            "openstack role add --user USER --project PROJECT with the roles admin and service, and the entry's user and project"
        }
        (BackendError::Denied { .. }, _) => GIVE_ADMIN,
        (BackendError::Version { .. }, _) => {
            "the driver needs a Nova of the release Xena or later, with version 2.89 of its API"
        }
        (BackendError::NoEndpoint { .. }, _) => {
            "mend region_name or interface of the entry, or the service catalogue; or remove the methods of this driver"
        }
        (BackendError::Away { .. } | BackendError::Late { .. }, _) => START_SERVICE,
        _ => SEE_LOG,
    }
}

/// The text of an error of a backend holds its cause.
fn told(error: &BackendError) -> String {
    error.to_string()
}
