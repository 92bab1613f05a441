//! What a Kubernetes node's `spec.providerID` says: the sort of cloud that the node's machine is of, and how a fence agent names it there.
//!
//! The forms are those of the cloud controller managers of each cloud, and of Cluster API's provider for Metal3.

use std::str::FromStr;

use uuid::Uuid;

use crate::Parameters;

/// The machine of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderId {
    /// An instance of AWS.
    Aws {
        /// Such as `eu-central-1`.
        region: String,
        /// Such as `i-0123456789abcdef0`.
        instance: String,
    },
    /// An instance of Google Compute Engine.
    Gce {
        /// The project that has it.
        project: String,
        /// Such as `europe-west3-a`.
        zone: String,
        /// Its name.
        name: String,
    },
    /// A virtual machine of Azure, of no scale set.
    Azure {
        /// The subscription that has it.
        subscription: String,
        /// Its resource group.
        resource_group: String,
        /// Its name.
        name: String,
    },
    /// A server of OpenStack.
    OpenStack {
        /// Its region, if the node says it.
        region: Option<String>,
        /// Its id in Nova.
        server: Uuid,
    },
    /// A virtual machine of vSphere.
    VSphere {
        /// The id in its BIOS.
        uuid: Uuid,
    },
    /// A bare-metal host of Metal3.
    Metal3(Metal3Host),
}

/// How a node names its bare-metal host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metal3Host {
    /// By the names of its object.
    Named {
        /// The namespace of the object.
        namespace: String,
        /// Its name.
        host: String,
    },
    /// By its object's uid, as older releases do.
    Uid(Uuid),
}

/// Why a provider's id cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderIdError {
    /// It is of a cloud that is not known.
    #[error("provider id {id:?} is of an unknown cloud; allowed: {}", FORMS.map(|(_, form)| form).join(", "))]
    UnknownCloud {
        /// The id.
        id: String,
    },
    /// It is of a known cloud and in an unknown form.
    #[error("provider id {id:?} is of an unknown form; allowed: {allowed}")]
    UnknownForm {
        /// The id.
        id: String,
        /// The form that this cloud has.
        allowed: &'static str,
    },
}

/// The clouds with the forms of their ids.
const FORMS: [(&str, &str); 6] = [
    ("aws", "aws:///ZONE/i-ID"),
    ("gce", "gce://PROJECT/ZONE/NAME"),
    (
        "azure",
        "azure:///subscriptions/ID/resourceGroups/GROUP/providers/Microsoft.Compute/virtualMachines/NAME",
    ),
    ("openstack", "openstack:///UUID or openstack://REGION/UUID"),
    ("vsphere", "vsphere://UUID"),
    (
        "metal3",
        "metal3://NAMESPACE/HOST/MACHINE, metal3://NAMESPACE/HOST or metal3:///UUID",
    ),
];

impl FromStr for ProviderId {
    type Err = ProviderIdError;

    fn from_str(id: &str) -> Result<Self, ProviderIdError> {
        let unknown = || ProviderIdError::UnknownCloud { id: id.to_owned() };
        let (cloud, rest) = id.split_once("://").ok_or_else(unknown)?;
        let (_, allowed) = FORMS
            .into_iter()
            .find(|(name, _)| *name == cloud)
            .ok_or_else(unknown)?;
        let parts: Vec<_> = rest.split('/').collect();
        read(cloud, &parts).ok_or(ProviderIdError::UnknownForm {
            id: id.to_owned(),
            allowed,
        })
    }
}

fn read(cloud: &str, parts: &[&str]) -> Option<ProviderId> {
    match (cloud, parts) {
        ("aws", &["", zone, instance]) => {
            let (region, instance) = (region(zone)?, plain(instance)?);
            instance
                .starts_with("i-")
                .then_some(ProviderId::Aws { region, instance })
        }
        ("gce", &[project, zone, name]) => Some(ProviderId::Gce {
            project: plain(project)?,
            zone: plain(zone)?,
            name: plain(name)?,
        }),
        ("azure", ["", path @ ..]) => azure(path),
        ("openstack", &[region, server]) => Some(ProviderId::OpenStack {
            region: if region.is_empty() {
                None
            } else {
                Some(plain(region)?)
            },
            server: uuid(server)?,
        }),
        ("vsphere", &[machine]) => uuid(machine).map(|uuid| ProviderId::VSphere { uuid }),
        ("metal3", &[uid] | &["", uid]) => uuid(uid).map(Metal3Host::Uid).map(ProviderId::Metal3),
        ("metal3", &[namespace, host] | &[namespace, host, _]) => {
            let (namespace, host) = (plain(namespace)?, plain(host)?);
            Some(ProviderId::Metal3(Metal3Host::Named { namespace, host }))
        }
        _ => None,
    }
}

/// Azure writes the names of the path's levels in any case.
fn azure(path: &[&str]) -> Option<ProviderId> {
    const LEVELS: [&str; 4] = ["subscriptions", "resourceGroups", "providers", "virtualMachines"];
    let &[
        subscriptions,
        subscription,
        groups,
        group,
        providers,
        provider,
        machines,
        name,
    ] = path
    else {
        return None;
    };
    let are_levels = [subscriptions, groups, providers, machines]
        .iter()
        .zip(LEVELS)
        .all(|(given, level)| given.eq_ignore_ascii_case(level));
    if !are_levels || !provider.eq_ignore_ascii_case("Microsoft.Compute") {
        return None;
    }
    Some(ProviderId::Azure {
        subscription: plain(subscription)?,
        resource_group: plain(group)?,
        name: plain(name)?,
    })
}

/// The region of a zone: `eu-central-1` of `eu-central-1a`, `us-west-2` of the local zone `us-west-2-lax-1a`.
fn region(zone: &str) -> Option<String> {
    let zone = plain(zone)?;
    let mut region = Vec::new();
    for part in zone.split('-') {
        let number = part.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        if number.is_empty() {
            region.push(part);
        } else {
            region.push(number);
            let is_number = number.chars().all(|c| c.is_ascii_digit());
            return (is_number && region.len() > 1).then(|| region.join("-"));
        }
    }
    None
}

/// A name that can stand in a parameter: Kubernetes takes any text for the id.
fn plain(name: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:()".contains(c);
    let is_plain = !name.is_empty() && name.chars().all(allowed);
    is_plain.then(|| name.to_owned())
}

fn uuid(text: &str) -> Option<Uuid> {
    Uuid::try_parse(text).ok()
}

impl ProviderId {
    /// The fence agent for machines of this cloud; none for bare metal.
    #[must_use]
    pub fn agent(&self) -> Option<&'static str> {
        match self {
            Self::Aws { .. } => Some("fence_aws"),
            Self::Gce { .. } => Some("fence_gce"),
            Self::Azure { .. } => Some("fence_azure_arm"),
            Self::OpenStack { .. } => Some("fence_openstack"),
            // The agent for the newer API knows machines by their names alone.
            Self::VSphere { .. } => Some("fence_vmware_soap"),
            Self::Metal3(_) => None,
        }
    }

    /// The parameters that name the machine, as that agent calls them; those of a bare-metal host as its object has them.
    #[must_use]
    pub fn parameters(&self) -> Parameters {
        let pairs: Vec<(&str, String)> = match self.clone() {
            Self::Aws { region, instance } => vec![("plug", instance), ("region", region)],
            Self::Gce { project, zone, name } => vec![("plug", name), ("project", project), ("zone", zone)],
            Self::Azure {
                subscription,
                resource_group,
                name,
            } => vec![
                ("plug", name),
                ("resourceGroup", resource_group),
                ("subscriptionId", subscription),
            ],
            // The agent takes the region from the entry of clouds.yaml.
            Self::OpenStack { server, .. } => vec![("plug", server.to_string())],
            Self::VSphere { uuid } => vec![("plug", uuid.to_string())],
            Self::Metal3(Metal3Host::Named { namespace, host }) => {
                vec![("namespace", namespace), ("host", host)]
            }
            Self::Metal3(Metal3Host::Uid(uid)) => vec![("uid", uid.to_string())],
        };
        pairs
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "4f2b4b66-0c5f-4a4d-9a43-3fd3a3b7a0d1";

    fn read(id: &str) -> (Option<&'static str>, String) {
        let id: ProviderId = id.parse().unwrap();
        let parameters: Vec<_> = id
            .parameters()
            .into_iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
        (id.agent(), parameters.join(" "))
    }

    fn expect(id: &str, agent: Option<&str>, parameters: &str) {
        assert_eq!(read(id), (agent, parameters.to_owned()), "{id}");
    }

    #[test]
    fn every_cloud_names_an_agent_and_the_machine() {
        let aws = |zone: &str| format!("aws:///{zone}/i-0123456789abcdef0");
        for (zone, region) in [
            ("eu-central-1a", "eu-central-1"),
            ("us-gov-west-1b", "us-gov-west-1"),
            ("us-west-2-lax-1a", "us-west-2"),
            ("us-east-1-wl1-bos-wlz-1", "us-east-1"),
        ] {
            let told = format!("plug=i-0123456789abcdef0 region={region}");
            expect(&aws(zone), Some("fence_aws"), &told);
        }
        expect(
            "gce://example.com:lab/europe-west3-a/node-1",
            Some("fence_gce"),
            "plug=node-1 project=example.com:lab zone=europe-west3-a",
        );
        expect(
            "azure:///subscriptions/s-1/resourcegroups/rg_1/providers/Microsoft.Compute/virtualMachines/node-1",
            Some("fence_azure_arm"),
            "plug=node-1 resourceGroup=rg_1 subscriptionId=s-1",
        );
        for id in [
            format!("openstack:///{UUID}"),
            format!("openstack://RegionOne/{UUID}"),
        ] {
            expect(&id, Some("fence_openstack"), &format!("plug={UUID}"));
        }
        let upper = UUID.to_uppercase();
        expect(
            &format!("vsphere://{upper}"),
            Some("fence_vmware_soap"),
            &format!("plug={UUID}"),
        );
    }

    #[test]
    fn a_bare_metal_host_is_named_by_its_object_or_by_its_uid() {
        for id in ["metal3://metal/host-1/machine-7", "metal3://metal/host-1"] {
            expect(id, None, "host=host-1 namespace=metal");
        }
        for id in [format!("metal3:///{UUID}"), format!("metal3://{UUID}")] {
            expect(&id, None, &format!("uid={UUID}"));
        }
    }

    #[test]
    fn an_unknown_cloud_is_refused_with_all_forms() {
        for id in [
            "",
            "node-1",
            "kind://docker/kind/node",
            "AWS:///eu-central-1a/i-1",
        ] {
            let error = id.parse::<ProviderId>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("provider id {id:?} is of an unknown cloud")),
                "{error}"
            );
            for (_, form) in FORMS {
                assert!(error.contains(form), "{error}");
            }
        }
    }

    #[test]
    fn an_unknown_form_is_refused_with_the_form_of_its_cloud() {
        let scale_set = "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/n/virtualMachines/0";
        for (id, form) in [
            ("aws:///eu-central-1a/fargate-10.0.0.1", "aws:///ZONE/i-ID"),
            ("aws:////i-0123", "aws:///ZONE/i-ID"),
            ("aws:///nowhere/i-0123", "aws:///ZONE/i-ID"),
            ("gce://p/z", "gce://PROJECT/ZONE/NAME"),
            ("gce://p/z/a\nb", "gce://PROJECT/ZONE/NAME"),
            (scale_set, "virtualMachines/NAME"),
            ("openstack:///node-1", "openstack:///UUID"),
            ("vsphere://", "vsphere://UUID"),
            ("metal3:///", "metal3:///UUID"),
            ("metal3:///host-1", "metal3:///UUID"),
        ] {
            let error = id.parse::<ProviderId>().unwrap_err().to_string();
            assert!(
                error.contains("of an unknown form") && error.contains(form),
                "{id}: {error}"
            );
        }
    }
}
