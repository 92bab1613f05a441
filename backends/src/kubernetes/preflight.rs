//! Checks whether a cluster can be used, before it is needed and without changing anything.

use std::os::unix::fs::PermissionsExt;

use chrono::{DateTime, TimeDelta};
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::client::Body;
use ringfence_core::Timestamp;

use super::rights::{self, EVICT, Right};
use super::version::Version;
use super::{Cluster, ClusterSettings, definitions, gates, volume_health};
use crate::{BackendError, Preflight};

/// An answer takes some time, and its date has whole seconds.
const SKEW: TimeDelta = TimeDelta::seconds(10);
/// Groups of the API that belong to other programs that act on silent nodes.
const OTHERS: &[(&str, &str)] = &[
    ("remediation.medik8s.io", "the Node Health Check operator"),
    ("self-node-remediation.medik8s.io", "Self Node Remediation"),
    ("fence-agents-remediation.medik8s.io", "Fence Agents Remediation"),
    ("cluster.x-k8s.io", "Cluster API"),
    ("machine.openshift.io", "OpenShift's machine API"),
];

pub(super) async fn of(cluster: &Cluster, now: Timestamp) -> Vec<Preflight> {
    let mut found: Vec<Preflight> = file(cluster).into_iter().collect();
    match checks(cluster, now).await {
        Ok(more) => found.extend(more),
        Err(error) => found.push(failure(&error)),
    }
    found
}

/// The file holds a token or a key.
fn file(cluster: &Cluster) -> Option<Preflight> {
    let path = cluster.settings().kubeconfig.as_ref()?;
    // A file that cannot be read is reported where it is read.
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
    let found = format!("{} has mode {mode:04o}, and it holds credentials", path.display());
    let remedy = "chmod 600, and give it to the user of the service".to_owned();
    (mode & 0o077 != 0).then_some(Preflight::Warning(found, remedy))
}

fn failure(error: &BackendError) -> Preflight {
    let remedy = match error {
        BackendError::Settings { .. } => {
            "mend kubernetes.clusters: each entry names a kubeconfig that can be read and a context of it"
        }
        BackendError::Denied { .. } => {
            "mend the token or the certificate of the kubeconfig's user; where a user is named that may not do it, grant that user the right"
        }
        BackendError::Away { .. } | BackendError::Late { .. } => {
            "start the API server, or mend the server's address in the kubeconfig or the network between"
        }
        BackendError::NotFound { .. }
        | BackendError::NoEndpoint { .. }
        | BackendError::Refused { .. }
        | BackendError::Version { .. }
        | BackendError::Unreadable { .. } => {
            "look whether the kubeconfig's server is an API server of Kubernetes"
        }
    };
    Preflight::Failure(error.to_string(), remedy.to_owned())
}

async fn checks(cluster: &Cluster, now: Timestamp) -> Result<Vec<Preflight>, BackendError> {
    let name = &cluster.settings().name;
    let (info, date) = ask_version(cluster).await?;
    let mut found = vec![version(name, &info)];
    found.extend(date.and_then(|date| clock(name, date - now)));
    found.push(refused(cluster.settings(), &rights::missing(cluster).await?));
    found.extend((!rights::may_evict(cluster).await?).then(|| evictions(cluster.settings())));
    found.extend(volume_health::preflight(cluster).await);
    // What a missing right makes fail further down does not hide that it is missing.
    let mut more = vec![others(cluster).await, definitions::preflight(cluster).await];
    // A release that is not known is told above; whether it has gates cannot be said.
    if Version::of(&info).is_some() {
        more.push(gates::preflight(cluster, now).await);
    }
    for more in more {
        match more {
            Ok(more) => found.extend(more),
            Err(error) => found.push(failure(&error)),
        }
    }
    Ok(found)
}

/// The cluster's version, and the time of its clock in whole seconds, if its answers have one.
async fn ask_version(cluster: &Cluster) -> Result<(Info, Option<Timestamp>), BackendError> {
    let client = cluster.client().await?;
    let ask = async {
        let request = http::Request::get("/version").body(Body::empty());
        let answer = client.send(request.map_err(kube::Error::HttpError)?).await?;
        let date = answer.headers().get(http::header::DATE);
        let date = date.and_then(|date| DateTime::parse_from_rfc2822(date.to_str().ok()?).ok());
        Ok((client.apiserver_version().await?, date.map(|date| date.to_utc())))
    };
    cluster.call(ask).await
}

fn version(name: &str, info: &Info) -> Preflight {
    let release = format!("{name}: Kubernetes {}", info.git_version);
    match Version::of(info) {
        None if info.git_version.is_empty() => Preflight::Failure(
            format!("{name}: the API server does not say which release it is"),
            "look whether the kubeconfig's server is an API server of Kubernetes".to_owned(),
        ),
        None => Preflight::Failure(
            format!("{release} is no release that Ringfence knows"),
            "use Kubernetes 1.20 or a later 1.x".to_owned(),
        ),
        Some(version) if !version.is_known() => Preflight::Failure(
            format!("{release} is older than any release that Ringfence is run with"),
            "upgrade the cluster to Kubernetes 1.20 or later".to_owned(),
        ),
        Some(version) if version.has_out_of_service() => Preflight::Good(format!(
            "{release}; a FENCED node gets the out-of-service taint, and its pods are deleted"
        )),
        Some(_) => Preflight::Good(format!(
            "{release}, which does not act on the out-of-service taint: the pods and attachments of a FENCED node are deleted"
        )),
    }
}

fn clock(name: &str, ahead: TimeDelta) -> Option<Preflight> {
    let direction = if ahead > TimeDelta::zero() {
        "ahead of"
    } else {
        "behind"
    };
    let found = format!(
        "{name}: the API server's clock is {} s {direction} this machine's",
        ahead.num_seconds().abs()
    );
    let remedy =
        "let both machines follow one set of time servers: logs and events cannot be compared until then";
    (ahead.abs() > SKEW).then(|| Preflight::Warning(found, remedy.to_owned()))
}

fn refused(settings: &ClusterSettings, missing: &[&Right]) -> Preflight {
    let name = &settings.name;
    if missing.is_empty() {
        return Preflight::Good(format!("{name}: all rights that Ringfence needs are granted"));
    }
    let told = missing
        .iter()
        .map(|right| format!("{} ({})", right.told(&settings.namespace), right.needed_for));
    Preflight::Failure(
        format!(
            "{name}: the cluster does not allow: {}",
            told.collect::<Vec<_>>().join("; ")
        ),
        "grant it to the user or the service account, as the chart does with mode=inCluster".to_owned(),
    )
}

/// A cluster's segments are not known here, and most ask for no budgets.
fn evictions(settings: &ClusterSettings) -> Preflight {
    let right = EVICT.told(&settings.namespace);
    Preflight::Good(format!(
        "{}: the right {right} is not granted, which segments with evacuation.disruption_budgets alone need",
        settings.name
    ))
}

/// Other programs that act on nodes that are silent.
async fn others(cluster: &Cluster) -> Result<Vec<Preflight>, BackendError> {
    let client = cluster.client().await?;
    let groups = cluster.call(client.list_api_groups()).await?;
    let is_there = |group: &str| groups.groups.iter().any(|one| one.name == group);
    let seen = OTHERS.iter().filter(|(group, _)| is_there(group));
    let told = seen.map(|(_, program)| {
        Preflight::Warning(
            format!(
                "{}: {program} is installed, and may act on a silent node by itself",
                cluster.settings().name
            ),
            "let one program alone act on a silent node".to_owned(),
        )
    });
    Ok(told.collect())
}
