//! The platforms of the configuration. Only this file names the kinds of platforms.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use ringfence_backends::Platform;
use ringfence_backends::kubernetes::{Cluster, ClusterSettings, ClusterUses, VolumeSettings};
use ringfence_backends::openstack::{Cloud, CloudSettings, Nova};
use ringfence_engine::ObserverConfig;
use ringfence_operator::HookClusters;
use ringfence_scheduler_hook::ClusterLookup;

use crate::config::Settings;
use crate::error::CliError;

/// The clouds of the configuration, each checked to have an entry. No call is made.
pub fn clouds(settings: &Settings) -> Result<Vec<Arc<Cloud>>, CliError> {
    let clouds = cloud_settings(settings).map(|cloud| {
        cloud
            .check()
            .map_err(|e| CliError::service("openstack", "cannot be used", e))?;
        Ok(Arc::new(Cloud::new(cloud)))
    });
    clouds.collect()
}

/// The clusters of the configuration. No call is made.
pub fn clusters(settings: &Settings) -> Result<Vec<Arc<Cluster>>, CliError> {
    let clusters = cluster_settings(settings)?.into_iter();
    Ok(clusters.map(|cluster| Arc::new(Cluster::new(cluster))).collect())
}

/// The platforms on these clouds and clusters.
pub fn with(clouds: &[Arc<Cloud>], clusters: &[Arc<Cluster>]) -> Result<Vec<Arc<dyn Platform>>, CliError> {
    let mut platforms = Nova::on(clouds);
    platforms.extend(
        clusters
            .iter()
            .map(|cluster| Arc::clone(cluster) as Arc<dyn Platform>),
    );
    let mut names = BTreeSet::new();
    match platforms.iter().find(|platform| !names.insert(platform.name())) {
        Some(twin) => Err(CliError::config(format!(
            "openstack.clouds and kubernetes.clusters name {:?} twice; each name is allowed once",
            twin.name()
        ))),
        None => Ok(platforms),
    }
}

/// Platforms, and how each is watched.
type Watched = Vec<(Arc<dyn Platform>, ObserverConfig)>;

/// The platforms of the configuration, and how each is watched.
pub fn watched(settings: &Settings) -> Result<Watched, CliError> {
    let (openstack, kubernetes) = (&settings.openstack, &settings.kubernetes);
    let clouds = clouds(settings)?;
    let adopted = adopted(settings)?;
    let remove_after = Some(kubernetes.remove_after_s).filter(|seconds| *seconds > 0);
    let remove_after = remove_after.map(|seconds| TimeDelta::seconds(i64::try_from(seconds).unwrap_or(3600)));
    let watch = |platform: Arc<dyn Platform>, (poll_s, down_after_s): (u64, u64), remove_after| {
        let config = ObserverConfig {
            every: Duration::from_secs(poll_s),
            down_after: TimeDelta::seconds(i64::try_from(down_after_s).unwrap_or(60)),
            adopt: adopted.get(platform.name()).cloned(),
            remove_after,
        };
        (platform, config)
    };
    let platforms = with(&clouds, &clusters(settings)?)?.into_iter().enumerate();
    let watched = platforms.map(|(at, platform)| {
        let is_cloud = at < clouds.len();
        match is_cloud {
            true => watch(platform, (openstack.poll_s, openstack.down_after_s), None),
            false => watch(
                platform,
                (kubernetes.poll_s, kubernetes.down_after_s),
                remove_after,
            ),
        }
    });
    Ok(watched.collect())
}

/// The cluster that keeps the records of its hosts.
pub struct RecordKeeper {
    pub cluster: Arc<Cluster>,
    /// The segment of these hosts.
    pub segment: Option<String>,
}

/// The cluster that keeps the records of its hosts, if one does.
pub fn record_keeper(settings: &Settings) -> Result<Option<RecordKeeper>, CliError> {
    let Some(name) = &settings.kubernetes.records else {
        return Ok(None);
    };
    Ok(Some(RecordKeeper {
        cluster: Arc::new(cluster("kubernetes.records", name, settings)?),
        segment: adopted(settings)?.remove(name),
    }))
}

/// Checks that no cluster keeps records: a service that shares a database and a broker with others would write around them.
pub fn refuse_records(service: &str, settings: &Settings) -> Result<(), CliError> {
    match &settings.kubernetes.records {
        None => Ok(()),
        Some(name) => Err(CliError::config(format!(
            "kubernetes.records is {name:?}, and {service} keeps everything in the database; leave the key out, or run ringfence standalone"
        ))),
    }
}

/// The platforms of the configuration, without a check of the clouds' entries.
pub fn unchecked(settings: &Settings) -> Result<Vec<Arc<dyn Platform>>, CliError> {
    let clouds = cloud_settings(settings).map(|cloud| Arc::new(Cloud::new(cloud)));
    with(&clouds.collect::<Vec<_>>(), &clusters(settings)?)
}

/// One cloud by its entry in a clouds.yaml.
pub fn one_cloud(name: &str, file: Option<PathBuf>, timeout: Duration) -> Arc<dyn Platform> {
    let settings = CloudSettings {
        name: name.to_owned(),
        file,
        timeout,
    };
    Arc::new(Nova::new(Arc::new(Cloud::new(settings))))
}

fn cloud_settings(settings: &Settings) -> impl Iterator<Item = CloudSettings> {
    let own = &settings.openstack;
    own.clouds.iter().map(|name| CloudSettings {
        name: name.clone(),
        file: own.clouds_file.clone(),
        timeout: Duration::from_millis(own.timeout_ms),
    })
}

fn cluster_settings(settings: &Settings) -> Result<Vec<ClusterSettings>, CliError> {
    let own = &settings.kubernetes;
    if own.kubeconfig.is_none() && own.clusters.len() > 1 {
        return Err(CliError::config(
            "kubernetes.clusters names several clusters; without kubernetes.kubeconfig one is allowed: that in which the service runs".to_owned(),
        ));
    }
    let contexts = pairs(
        "kubernetes.contexts",
        &own.contexts,
        ("kubernetes.clusters", &own.clusters),
    )?;
    let volumes = VolumeSettings {
        label: fenced_label(&own.fenced_label)?,
        storageos_secret: own.storageos_secret.clone(),
        longhorn_namespace: own.longhorn_namespace.clone(),
        poll: Duration::from_secs(own.volume_poll_s),
    };
    let cluster = |name: &String| ClusterSettings {
        name: name.clone(),
        kubeconfig: own.kubeconfig.clone(),
        context: Some(contexts.get(name).unwrap_or(name).clone()),
        namespace: own.namespace.clone(),
        fenced_storage: own.fenced_storage.clone(),
        gate: own.gate.clone(),
        timeout: Duration::from_millis(own.timeout_ms),
        down_after: Duration::from_secs(own.down_after_s),
        ready_for: Duration::from_secs(own.ready_for_s),
        volumes: volumes.clone(),
        uses: ClusterUses {
            has_operator: own.operator.contains(name),
            has_records: own.records.as_ref() == Some(name),
        },
    };
    Ok(own.clusters.iter().map(cluster).collect())
}

/// `KEY=VALUE`, as labels of Kubernetes are, or `none`.
fn fenced_label(text: &str) -> Result<Option<(String, String)>, CliError> {
    if text == "none" {
        return Ok(None);
    }
    let is_word = |word: &str| {
        let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        let mut chars = word.chars();
        let ends = is_end(chars.next()) && is_end(word.chars().last());
        ends && word.len() <= 253
            && word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    let label = text.split_once('=').filter(|(key, value)| {
        let (prefix, name) = key.split_once('/').unwrap_or(("k", key));
        is_word(prefix) && is_word(name) && name.len() <= 63 && is_word(value) && value.len() <= 63
    });
    let (key, value) = label.ok_or_else(|| {
        CliError::config(format!(
            "kubernetes.fenced_label is {text:?}; a label KEY=VALUE is allowed, such as storageos.com/fenced=true, or none"
        ))
    })?;
    Ok(Some((key.to_owned(), value.to_owned())))
}

/// The clusters whose objects are served.
pub fn operated(settings: &Settings) -> Result<Vec<ClusterSettings>, CliError> {
    let (wanted, known) = (&settings.kubernetes.operator, &settings.kubernetes.clusters);
    if let Some(unknown) = wanted.iter().find(|name| !known.contains(name)) {
        let known = known.join(", ");
        return Err(CliError::config(format!(
            "kubernetes.operator has {unknown:?}; one of kubernetes.clusters ({known}) is allowed"
        )));
    }
    let mut clusters = cluster_settings(settings)?;
    clusters.retain(|cluster| wanted.contains(&cluster.name));
    Ok(clusters)
}

/// Asks the clusters of the configuration. No call is made yet.
pub fn lookup(settings: &Settings) -> Result<ClusterLookup, CliError> {
    Ok(ClusterLookup::new(HookClusters::new(clusters(settings)?)))
}

/// The cluster of the configuration that `field` names. No call is made.
pub fn cluster(field: &str, name: &str, settings: &Settings) -> Result<Cluster, CliError> {
    let mut clusters = cluster_settings(settings)?.into_iter();
    let found = clusters.find(|cluster| cluster.name == name);
    found.map(Cluster::new).ok_or_else(|| {
        let known = settings.kubernetes.clusters.join(", ");
        CliError::config(format!(
            "{field} is {name:?}; one of kubernetes.clusters ({known}) is allowed"
        ))
    })
}

/// The platforms whose new hosts are added automatically, and the segments of these hosts.
fn adopted(settings: &Settings) -> Result<BTreeMap<String, String>, CliError> {
    let (openstack, kubernetes) = (&settings.openstack, &settings.kubernetes);
    let mut adopted = pairs(
        "openstack.adopt",
        &openstack.adopt,
        ("openstack.clouds", &openstack.clouds),
    )?;
    let clusters = ("kubernetes.clusters", kubernetes.clusters.as_slice());
    adopted.extend(pairs("kubernetes.adopt", &kubernetes.adopt, clusters)?);
    Ok(adopted)
}

/// A setting that says something of platforms which another setting names.
fn pairs(
    field: &str,
    given: &[String],
    (names, known): (&str, &[String]),
) -> Result<BTreeMap<String, String>, CliError> {
    let mut pairs = BTreeMap::new();
    for pair in given {
        let (name, value) = pair.split_once(':').unwrap_or((pair, ""));
        let fault = |why: &str| CliError::config(format!("{field} has {pair:?}; {why}"));
        if !known.iter().any(|known| known == name) {
            let known = known.join(", ");
            return Err(fault(&format!("one of {names} ({known}) is allowed")));
        }
        if pairs.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(fault("each is allowed once"));
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_a_key_and_a_value_or_none() {
        let label = |key: &str, value: &str| Some((key.to_owned(), value.to_owned()));
        for (text, read) in [
            ("storageos.com/fenced=true", label("storageos.com/fenced", "true")),
            ("ha=1", label("ha", "1")),
            ("none", None),
        ] {
            assert_eq!(fenced_label(text).unwrap(), read);
        }
        for text in ["", "fenced", "=true", "a/b/c=true", "a b=true", "ha=", "-ha=true"] {
            let told = fenced_label(text).unwrap_err().to_string();
            assert!(
                told.contains("kubernetes.fenced_label") && told.contains("KEY=VALUE"),
                "{told}"
            );
        }
    }
}
