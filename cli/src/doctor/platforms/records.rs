//! The hosts of platforms and of Ringfence, and the engine that watches them.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{Backend, Census, Listed, census};
use ringfence_db::{Database, DbError, ListedHost, lease_holder, listed_hosts};

use super::{PART, Seen};
use crate::config::Settings;
use crate::doctor::Report;
use crate::doctor::names::some_of;
use crate::error::error_chain;

/// How many findings of one kind are shown.
const NAMED: usize = 5;

/// Compares the hosts of the platforms that have answered with Ringfence's, and checks whether an engine watches them.
pub(in crate::doctor) async fn compare(
    settings: &Settings,
    db: &Database,
    seen: &[Seen],
    report: &mut Report,
) {
    if let Err(error) = look(settings, db, seen, report).await {
        report.failure(PART, error_chain(&error), "see the database's own log");
    }
}

async fn look(settings: &Settings, db: &Database, seen: &[Seen], report: &mut Report) -> Result<(), DbError> {
    let hosts = listed_hosts(&mut db.reader()).await?;
    let listed: Vec<Listed<'_>> = hosts.iter().map(Listed::from).collect();
    for Seen { platform, hosts } in seen {
        let named: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let census = census((platform.kind(), platform.name()), "", &named, &listed);
        let keys = Keys::of(platform.kind());
        tell(
            &platform.label(),
            platform.name(),
            &census,
            (settings, keys),
            report,
        );
    }
    judge_watchers(settings, db, &hosts, report).await
}

/// The keys of the configuration that name platforms of one kind.
#[derive(Clone, Copy)]
struct Keys {
    platforms: &'static str,
    adopt: &'static str,
    /// How a host is added by hand.
    add: &'static str,
}

impl Keys {
    fn of(kind: Backend) -> Self {
        match kind {
            Backend::Kubernetes => Self {
                platforms: "kubernetes.clusters",
                adopt: "kubernetes.adopt",
                add: "ringfence host add NODE --backend kubernetes --cloud",
            },
            Backend::Nova | Backend::None => Self {
                platforms: "openstack.clouds",
                adopt: "openstack.adopt",
                add: "ringfence host import --cloud",
            },
        }
    }
}

fn tell(label: &str, cloud: &str, census: &Census, (settings, keys): (&Settings, Keys), report: &mut Report) {
    let is_empty = *census == Census::default();
    if is_empty {
        report.good(PART, format!("{label}: its hosts are exactly those of Ringfence"));
    }
    if !census.missing.is_empty() {
        report.failure(
            PART,
            format!("{label} does not know {}", some_of(&census.missing)),
            "mend their names there (ringfence host set HOST --known-as NAME), or delete them in Ringfence",
        );
    }
    let new: Vec<String> = census
        .new
        .iter()
        .map(|host| host.known_as.clone().unwrap_or(host.name.clone()))
        .collect();
    if !new.is_empty() {
        let Keys { adopt, add, .. } = keys;
        let mut adopted = settings.openstack.adopt.iter().chain(&settings.kubernetes.adopt);
        let remedy = if adopted.any(|pair| pair.split(':').next() == Some(cloud)) {
            format!("{adopt} adds them when they are up; see the engine's log")
        } else {
            format!("{add} {cloud}; or let {adopt} do it")
        };
        report.warning(
            PART,
            format!("{label}: Ringfence does not have {}", some_of(&new)),
            remedy,
        );
    }
    for (host, why) in census.barred.iter().take(NAMED) {
        report.warning(
            PART,
            format!("{label}: {host} cannot be added: {why}"),
            "add it by hand with another name: ringfence host add NAME --known-as ...",
        );
    }
}

async fn judge_watchers(
    settings: &Settings,
    db: &Database,
    hosts: &[ListedHost],
    report: &mut Report,
) -> Result<(), DbError> {
    let asked = hosts.iter().filter(|host| host.backend.is_asked());
    let mut by_cloud: BTreeMap<Option<&str>, (Vec<String>, Keys)> = BTreeMap::new();
    for host in asked {
        let of = by_cloud.entry(host.cloud.as_deref());
        let (names, _) = of.or_insert_with(|| (Vec::new(), Keys::of(host.backend)));
        names.push(host.name.clone());
    }
    if let Some((homeless, _)) = by_cloud.remove(&None) {
        report.warning(
            PART,
            format!(
                "the backend is a platform, but no cloud is named for {}",
                some_of(&homeless)
            ),
            "ringfence host set HOST --cloud NAME, so that Ringfence watches them and tells their platform of a fence",
        );
    }
    let own = settings
        .openstack
        .clouds
        .iter()
        .chain(&settings.kubernetes.clusters);
    let own: BTreeSet<&str> = own.map(String::as_str).collect();
    let now = db.now().await?;
    for (cloud, (of, keys)) in by_cloud {
        let platforms = keys.platforms;
        let Some(cloud) = cloud else { continue };
        let lease = format!("observer {cloud}");
        if lease_holder(&mut db.reader(), &lease, now).await?.is_none() {
            report.failure(
                PART,
                format!("{cloud}: no engine watches {}", some_of(&of)),
                format!("start an engine with {cloud} in {platforms}"),
            );
        } else if !own.contains(cloud) {
            report.warning(
                PART,
                format!("{cloud}: not in {platforms} here, and {} belong to it", some_of(&of)),
                "name it if this is a machine of an engine, or of a worker with workloads in worker.resources",
            );
        }
    }
    Ok(())
}
