//! Drivers, and what each knows of its parameters and secrets.

use super::Method;
use super::parameters::is_secret_name;
use crate::{Problems, Resource, words};

/// The code that speaks to a device.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Driver {
    /// Any ClusterLabs fence agent.
    FenceAgent,
    /// DMTF Redfish.
    Redfish,
    /// IPMI over LAN by `ipmitool`.
    Ipmi,
    /// OpenStack Cinder: the volumes of a host's servers.
    Cinder,
    /// OpenStack Neutron: the ports of a host's servers.
    Neutron,
    /// OpenStack Ironic: the power of a node.
    Ironic,
    /// A simulated device.
    Simulated,
}

words!(Driver);

/// A parameter that a native driver knows.
struct Known {
    name: &'static str,
    required: bool,
}

const fn required(name: &'static str) -> Known {
    Known { name, required: true }
}

const fn optional(name: &'static str) -> Known {
    Known {
        name,
        required: false,
    }
}

impl Driver {
    /// The resources that the driver can act on.
    #[must_use]
    pub fn resources(self) -> &'static [Resource] {
        match self {
            Self::FenceAgent => &[Resource::Power, Resource::Storage, Resource::Network],
            Self::Redfish | Self::Ipmi | Self::Ironic => &[Resource::Power],
            Self::Cinder => &[Resource::Storage],
            Self::Neutron => &[Resource::Network],
            Self::Simulated => &[Resource::Power, Resource::Storage, Resource::Network],
        }
    }

    /// The driver's own parameters; a fence agent tells its own by its metadata, which a worker reads.
    fn known(self) -> &'static [Known] {
        const FENCE_AGENT: &[Known] = &[required("agent")];
        const REDFISH: &[Known] = &[
            required("address"),
            required("system"),
            required("username"),
            optional("ca_file"),
            optional("insecure"),
        ];
        const IPMI: &[Known] = &[
            required("address"),
            optional("port"),
            required("username"),
            optional("cipher"),
            optional("privilege"),
        ];
        // What is not given of these is the host's own, from when the method is filled in for it.
        const CINDER: &[Known] = &[
            optional("cloud"),
            optional("host"),
            optional("trusted_backends"),
            optional("local_disks"),
        ];
        const NEUTRON: &[Known] = &[optional("cloud"), optional("host"), optional("trusted")];
        const IRONIC: &[Known] = &[optional("cloud"), optional("node")];
        const SIMULATED: &[Known] = &[required("device")];
        match self {
            Self::FenceAgent => FENCE_AGENT,
            Self::Redfish => REDFISH,
            Self::Ipmi => IPMI,
            Self::Cinder => CINDER,
            Self::Neutron => NEUTRON,
            Self::Ironic => IRONIC,
            Self::Simulated => SIMULATED,
        }
    }

    /// The secrets that the driver takes, and whether it needs them; a fence agent tells its own.
    fn known_secrets(self) -> Option<&'static [Known]> {
        const PASSWORD: &[Known] = &[required("password")];
        match self {
            Self::FenceAgent => None,
            Self::Redfish | Self::Ipmi => Some(PASSWORD),
            Self::Cinder | Self::Neutron | Self::Ironic | Self::Simulated => Some(&[]),
        }
    }

    /// Seconds for which a command that was given up may still be carried out, where the method says nothing else. A slow controller was
    /// seen to act 6 s after its client had given up; a service with a queue of its own takes longer.
    #[must_use]
    pub fn lingers_s(self) -> u32 {
        match self {
            Self::Redfish | Self::Ipmi | Self::FenceAgent => 30,
            Self::Ironic | Self::Cinder | Self::Neutron => 120,
            Self::Simulated => 10,
        }
    }

    /// Whether one service of a cloud answers for all hosts of it, so that it is heard where it is asked about one of them.
    #[must_use]
    pub fn is_one_for_a_cloud(self) -> bool {
        match self {
            Self::Cinder | Self::Neutron => true,
            Self::FenceAgent | Self::Redfish | Self::Ipmi | Self::Ironic | Self::Simulated => false,
        }
    }

    /// The parameters that say which cloud of the configuration and which host there, where the driver speaks to one. Those that are not
    /// given are the host's own.
    #[must_use]
    pub fn place(self) -> Option<[&'static str; 2]> {
        match self {
            Self::Cinder | Self::Neutron => Some(["cloud", "host"]),
            Self::Ironic => Some(["cloud", "node"]),
            Self::FenceAgent | Self::Redfish | Self::Ipmi | Self::Simulated => None,
        }
    }
}

/// For drivers with a list of parameters of their own: nothing missing, nothing unknown.
pub(super) fn check_known(method: &Method, problems: &mut Problems) {
    let known = method.driver.known();
    for parameter in known.iter().filter(|p| p.required) {
        if method.parameters.get(parameter.name).is_none_or(String::is_empty) {
            problems.add(
                format!("parameters.{}", parameter.name),
                format!("is missing; driver {} needs it", method.driver),
            );
        }
    }
    let Some(secrets) = method.driver.known_secrets() else {
        return;
    };
    let names = |list: &[Known]| list.iter().map(|k| k.name).collect::<Vec<_>>().join(", ");
    for name in method.parameters.keys().filter(|n| !is_secret_name(n)) {
        if !known.iter().any(|k| k.name == name) {
            problems.add(
                format!("parameters.{name}"),
                format!(
                    "is unknown to driver {}; allowed: {}",
                    method.driver,
                    names(known)
                ),
            );
        }
    }
    for secret in secrets
        .iter()
        .filter(|s| s.required && !method.secrets.contains_key(s.name))
    {
        problems.add(
            format!("secrets.{}", secret.name),
            format!(
                "is missing; driver {} needs it, as env:NAME or file:/absolute/path",
                method.driver
            ),
        );
    }
    for name in method
        .secrets
        .keys()
        .filter(|name| !secrets.iter().any(|s| s.name == *name))
    {
        let allowed = if secrets.is_empty() {
            "none".to_owned()
        } else {
            names(secrets)
        };
        problems.add(
            format!("secrets.{name}"),
            format!("is unknown to driver {}; allowed: {allowed}", method.driver),
        );
    }
}
