//! The method `restart-instance`: the cloud that a node's provider id names switches the node's machine off and on.

use std::collections::BTreeSet;

use ringfence_core::{Metal3Host, MethodTimes, Parameters, Problems, ProviderId, Resource, SecretReference};
use ringfence_engine::{Declaration, MethodDraft};

use super::steps::RESTART_INSTANCE;

/// The prefix of the name of the Secret with the credentials of a cloud.
pub(crate) const SECRET: &str = "fence-cloud-";
/// Switching a machine of a cloud off can take a minute or more.
const TIMES: MethodTimes = MethodTimes {
    attempt_timeout_s: 240,
    timeout_s: 600,
    retries: 2,
    pause_ms: 1000,
    settle_s: 0,
    lingers_s: None,
};
/// The agent is given a little less, in seconds.
const POWER_TIMEOUT_S: &str = "200";

/// A sort of clouds, or of bare metal, that a provider id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cloud {
    Aws,
    Azure,
    Gce,
    Metal3,
    OpenStack,
    VSphere,
}

impl Cloud {
    pub fn of(id: &ProviderId) -> Self {
        match id {
            ProviderId::Aws { .. } => Self::Aws,
            ProviderId::Azure { .. } => Self::Azure,
            ProviderId::Gce { .. } => Self::Gce,
            ProviderId::Metal3(_) => Self::Metal3,
            ProviderId::OpenStack { .. } => Self::OpenStack,
            ProviderId::VSphere { .. } => Self::VSphere,
        }
    }

    /// As the provider ids of its machines begin.
    pub fn word(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::Azure => "azure",
            Self::Gce => "gce",
            Self::Metal3 => "metal3",
            Self::OpenStack => "openstack",
            Self::VSphere => "vsphere",
        }
    }

    /// The Secret with its credentials; the operator of Metal3 has them itself.
    pub fn secret(self) -> Option<String> {
        (self != Self::Metal3).then(|| format!("{SECRET}{}", self.word()))
    }

    /// The place of its method.
    pub fn place(self, prefix: &str) -> String {
        format!("{prefix}{SECRET}{}", self.word())
    }

    /// The name of its method.
    pub fn method_name(self, prefix: &str) -> String {
        Declaration::method_name(&self.place(prefix), RESTART_INSTANCE)
    }

    /// Its method, for machines like this one. The keys of its Secret are the credentials, and whatever else its agent needs.
    ///
    /// # Errors
    /// A key stands for what each node says of its own machine.
    pub fn method(
        self,
        prefix: &str,
        cluster: &str,
        machine: &ProviderId,
        keys: &BTreeSet<String>,
    ) -> Result<MethodDraft, Problems> {
        let mut problems = Problems::default();
        let own = machine.parameters();
        for key in keys.iter().filter(|key| own.contains_key(*key)) {
            problems.add(
                key,
                "is given by each node's provider id; remove it from the Secret",
            );
        }
        problems.into_result()?;
        let (driver, mut parameters) = match machine.agent() {
            Some(agent) => (
                "fence-agent",
                text(&[("agent", agent), ("power_timeout", POWER_TIMEOUT_S)]),
            ),
            None => ("metal3", text(&[("cluster", cluster)])),
        };
        parameters.retain(|name, _| !keys.contains(name));
        let secret = self.secret().unwrap_or_default();
        let reference = |key: &String| SecretReference::Cluster {
            cluster: cluster.to_owned(),
            secret: secret.clone(),
            key: key.clone(),
        };
        Ok(MethodDraft {
            name: self.method_name(prefix),
            resource: Resource::Power,
            driver: driver.to_owned(),
            parameters,
            secrets: keys.iter().map(|key| (key.clone(), reference(key))).collect(),
            zone: None,
            times: TIMES,
        })
    }
}

fn text(pairs: &[(&str, &str)]) -> Parameters {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// What a node says of its machine, or why that is of no use.
pub(crate) fn machine(provider_id: &str) -> Result<ProviderId, String> {
    match provider_id.parse() {
        Ok(ProviderId::Metal3(Metal3Host::Uid(_))) => Err(format!(
            "provider id {provider_id:?} names its bare-metal host by a uid; metal3://NAMESPACE/HOST/MACHINE is allowed"
        )),
        Ok(id) => Ok(id),
        Err(_) if provider_id.is_empty() => Err("the node has no provider id (spec.providerID)".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
