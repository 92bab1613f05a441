//! The version of a cluster, and what follows from it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use k8s_openapi::apimachinery::pkg::version::Info;

/// The oldest release that Ringfence is run with.
const OLDEST: u32 = 20;

/// The oldest release that removes pods and attachments of a node with the out-of-service taint without being told to try it out.
const OUT_OF_SERVICE: u32 = 26;

/// The oldest release with admission policies.
const POLICIES: u32 = 30;

/// A release of Kubernetes, 1.N.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(pub u32);

impl Version {
    /// From the cluster's answer. Distributions add signs to the number.
    pub fn of(info: &Info) -> Option<Self> {
        let digits: String = info.minor.chars().take_while(char::is_ascii_digit).collect();
        let minor = digits.parse().ok()?;
        (info.major == "1").then_some(Self(minor))
    }

    /// Whether Ringfence is run with the release.
    pub fn is_known(self) -> bool {
        self >= Self(OLDEST)
    }

    /// Whether the cluster has admission policies.
    pub fn has_policies(self) -> bool {
        self >= Self(POLICIES)
    }

    /// Whether the cluster acts on the out-of-service taint.
    pub fn has_out_of_service(self) -> bool {
        self >= Self(OUT_OF_SERVICE)
    }
}

/// The group and version in which the cluster wants evictions, from what it serves in `/api/v1`: `policy/v1` from 1.22 on.
pub(super) fn of_evictions(served: &APIResourceList) -> Option<String> {
    let eviction = served.resources.iter().find(|one| one.name == "pods/eviction")?;
    let (group, version) = (eviction.group.as_ref()?, eviction.version.as_ref()?);
    Some(format!("{group}/{version}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn version(major: &str, minor: &str) -> Option<Version> {
        Version::of(&Info {
            major: major.to_owned(),
            minor: minor.to_owned(),
            ..Info::default()
        })
    }

    /// As 1.20.2 and 1.22 answer, without their other resources.
    #[test]
    fn evictions_are_written_as_the_cluster_serves_them() {
        for version in ["v1beta1", "v1"] {
            let served = json!({
                "kind": "APIResourceList", "groupVersion": "v1",
                "resources": [
                    { "name": "pods", "singularName": "", "namespaced": true, "kind": "Pod", "verbs": ["create", "delete", "get"] },
                    {
                        "name": "pods/eviction", "singularName": "", "namespaced": true, "group": "policy", "version": version,
                        "kind": "Eviction", "verbs": ["create"],
                    },
                ],
            });
            let mut served: APIResourceList = serde_json::from_value(served).unwrap();
            assert_eq!(of_evictions(&served), Some(format!("policy/{version}")));
            served.resources.pop();
            assert_eq!(of_evictions(&served), None);
        }
    }

    #[test]
    fn what_follows_the_digits_is_ignored() {
        assert_eq!(version("1", "32"), Some(Version(32)));
        assert_eq!(version("1", "27+"), Some(Version(27)));
        assert_eq!(version("1", "+"), None);
        assert_eq!(version("2", "0"), None);
    }

    #[test]
    fn a_release_tells_what_it_has() {
        let has = |minor| Version(minor).has_policies();
        assert_eq!([20, 29, 30, 36].map(has), [false, false, true, true]);
    }

    #[test]
    fn a_release_tells_whether_it_is_known() {
        let is_known = |minor| Version(minor).is_known();
        assert_eq!([0, 19, 20, 36].map(is_known), [false, false, true, true]);
    }

    #[test]
    fn a_release_tells_what_it_acts_on() {
        let acts = |minor| Version(minor).has_out_of_service();
        assert_eq!([20, 25, 26, 32].map(acts), [false, false, true, true]);
    }
}
