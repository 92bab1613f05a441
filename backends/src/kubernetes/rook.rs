//! A Ceph that Rook runs in the cluster: Rook keeps the addresses of its monitors, which move, in an object.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;

use super::Cluster;
use crate::BackendError;

/// The object and the key with `a=192.0.2.1:6789,b=192.0.2.2:6789`.
const ENDPOINTS: &str = "rook-ceph-mon-endpoints";
const KEY: &str = "data";

impl Cluster {
    /// The addresses of the monitors of the Ceph that Rook runs in this namespace, with commas between them. The inner error says, in words, why there are none.
    ///
    /// # Errors
    /// The cluster does not answer, or refuses.
    pub async fn rook_monitors(&self, namespace: &str) -> Result<Result<String, String>, BackendError> {
        let api: Api<ConfigMap> = Api::namespaced(self.client().await?.clone(), namespace);
        let Some(map) = self.call(api.get_opt(ENDPOINTS)).await? else {
            return Ok(Err(format!(
                "namespace {namespace} has no ConfigMap {ENDPOINTS}; name the namespace of a CephCluster of Rook's"
            )));
        };
        let listed = map.data.unwrap_or_default().remove(KEY).unwrap_or_default();
        Ok(addresses(&listed))
    }
}

fn addresses(listed: &str) -> Result<String, String> {
    let addresses: Option<Vec<&str>> = listed
        .split(',')
        .map(|one| one.split_once('=').map(|(_, address)| address.trim()))
        .collect();
    let known = addresses.filter(|all| all.iter().all(|address| !address.is_empty()));
    known.map(|all| all.join(",")).ok_or_else(|| {
        format!("the ConfigMap {ENDPOINTS} lists no monitors in its key {KEY}; NAME=ADDRESS is expected, with commas between them")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monitors_are_those_that_rook_lists() {
        let listed = "a=10.101.5.1:6789,b=[fd00::2]:3300";
        assert_eq!(addresses(listed).unwrap(), "10.101.5.1:6789,[fd00::2]:3300");
        for listed in ["", "a=", "a=10.0.0.1:6789,", "10.0.0.1:6789"] {
            assert!(addresses(listed).is_err(), "{listed}");
        }
    }
}
