//! How a Ceph is reached: what the drivers have in common that ask one.

use std::path::{Path, PathBuf};

use ringfence_bus::ValidateRequest;
use ringfence_core::{FrozenMethod, Parameter, Problem, Secret, value_of};
use tokio::time::{Instant, timeout_at};

use super::program::Ceph;
use crate::driver::DriverSettings;
use crate::drivers::clusters::{CLUSTER, Clusters, OUT_OF_TIME};
use crate::drivers::required;
use crate::{Secrets, WorkerError};

pub(super) const CONF: &str = "/etc/ceph/ceph.conf";
pub(super) const DEFAULT_USER: &str = "client.ringfence";

/// The configuration of the cluster.
pub(in crate::drivers) const CONF_FILE: Parameter =
    Parameter::optional("conf", "the configuration of the cluster, a file on the worker")
        .says_where()
        .by_default(CONF)
        .allowing("an absolute path is allowed", |path| path.starts_with('/'));

/// The monitors, where there is no configuration.
pub(in crate::drivers) const MONITORS: Parameter =
    Parameter::optional("monitors", "addresses of the monitors, in place of those in conf")
        .says_where()
        .allowing(
            "addresses with commas between them are allowed, such as 192.0.2.1,v2:192.0.2.2:3300",
            are_monitors,
        );

/// The cluster in which Rook runs it.
pub(in crate::drivers) const ROOK: Parameter = Parameter::optional(
    CLUSTER.name,
    "one of kubernetes.clusters of the worker, where Rook runs the Ceph: its monitors are read there, in place of those in conf",
)
.says_where();

/// Where Rook keeps it.
pub(in crate::drivers) const NAMESPACE: Parameter = Parameter::optional(
    "namespace",
    "the namespace of Rook's CephCluster; needed with cluster",
)
.says_where();

/// Who asks.
pub(in crate::drivers) const USER: Parameter = Parameter::optional("user", "the user of Ceph")
    .by_default(DEFAULT_USER)
    .allowing("client. and a name is allowed, such as client.ringfence", is_user);

/// The key of the user.
pub(in crate::drivers) const KEYRING: Secret = Secret {
    name: "keyring",
    is_required: false,
};

fn are_monitors(list: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ".:,[]-".contains(c);
    list.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[') && list.chars().all(allowed)
}

fn is_user(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    name.strip_prefix("client.")
        .is_some_and(|rest| !rest.is_empty() && rest.chars().all(allowed))
}

/// The program on this machine, and the clusters in which Rook may run a Ceph.
pub(in crate::drivers) struct Reached {
    program: PathBuf,
    clusters: Clusters,
}

impl Reached {
    pub fn of(settings: &DriverSettings) -> Self {
        Self {
            program: settings.ceph.clone(),
            clusters: Clusters::of(settings),
        }
    }

    /// The Ceph of a method.
    pub async fn program<'a>(
        &'a self,
        method: &'a FrozenMethod,
        secrets: &'a Secrets,
        until: Instant,
    ) -> Result<Ceph<'a>, WorkerError> {
        let is_rooks = [ROOK.name, NAMESPACE.name]
            .iter()
            .any(|name| method.parameters.contains_key(*name));
        let monitors = match is_rooks {
            true => Some(self.rook_monitors(method, until).await?),
            false => None,
        };
        Ok(Ceph::new(&self.program, method, secrets, monitors))
    }

    /// They move, so that they are read each time.
    async fn rook_monitors(&self, method: &FrozenMethod, until: Instant) -> Result<String, WorkerError> {
        let cluster = self.clusters.of_method(method)?;
        let namespace = required(method, NAMESPACE.name)?;
        match timeout_at(until, cluster.rook_monitors(namespace)).await {
            Ok(Ok(monitors)) => monitors.map_err(WorkerError::refused),
            Ok(Err(error)) if error.is_passing() => Err(WorkerError::unclear(error.to_string())),
            Ok(Err(error)) => Err(WorkerError::refused(error.to_string())),
            Err(_) => Err(WorkerError::unclear(OUT_OF_TIME)),
        }
    }

    /// What this machine is without.
    pub fn validate(&self, request: &ValidateRequest) -> Vec<Problem> {
        let given = |name| value_of(&request.parameters, name);
        let conf = given(CONF_FILE.name);
        let needs_conf = conf.is_some() || given(MONITORS.name).or(given(ROOK.name)).is_none();
        let conf = needs_conf.then(|| conf.unwrap_or(CONF));
        let conf = conf.and_then(|conf| absent(Path::new(conf), "parameters.conf"));
        absent(&self.program, "driver").into_iter().chain(conf).collect()
    }

    /// That `rados` is missing, if it is.
    pub fn validate_rados(&self) -> Option<Problem> {
        absent(&super::program::rados(&self.program), "driver")
    }
}

fn absent(path: &Path, at: &str) -> Option<Problem> {
    let words = format!("needs {}, which is not on the worker", path.display());
    (!path.is_file()).then(|| Problem::new(at, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_parameter_can_be_taken_for_an_option_of_the_program() {
        for monitors in ["192.0.2.1", "[fd00::1]:3300,mon-b.example", "v2:192.0.2.2:3300"] {
            assert!(are_monitors(monitors), "{monitors}");
        }
        for monitors in ["", "-m", "--conf=/x", "a b", "a;b"] {
            assert!(!are_monitors(monitors), "{monitors}");
        }
        assert!(is_user("client.rf-1"));
        for user in ["client.", "ringfence", "osd.1", "client.a b", "--name"] {
            assert!(!is_user(user), "{user}");
        }
    }
}
