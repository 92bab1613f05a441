//! Workloads with volumes, for which a lost node matters.

use serde_json::{Value, json};

use super::KubeApi;
use crate::error::LabError;

/// The name of the volume driver that every node has.
pub const CSI_DRIVER: &str = "csi.lab";
/// The class of the volumes.
const CLASS: &str = "lab";

/// Makes the volume driver known, and as many volumes that can be attached to one node at a time.
///
/// # Errors
/// If the API server refuses.
pub fn make_volumes(api: &KubeApi, count: usize) -> Result<(), LabError> {
    let storage = "/apis/storage.k8s.io/v1";
    api.post(
        &format!("{storage}/csidrivers"),
        &json!({"metadata": {"name": CSI_DRIVER}, "spec": {"attachRequired": true, "podInfoOnMount": false}}),
    )?;
    api.post(
        &format!("{storage}/storageclasses"),
        &json!({
            "metadata": {"name": CLASS},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "Immediate",
        }),
    )?;
    for number in 0..count {
        let volume = json!({
            "metadata": {"name": format!("volume-{number}")},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": CLASS,
                "csi": {"driver": CSI_DRIVER, "volumeHandle": format!("handle-{number}")},
            },
        });
        api.post("/api/v1/persistentvolumes", &volume)?;
    }
    Ok(())
}

/// A `StatefulSet` whose members have a volume each, are kept on different nodes, and wait an hour on a node that is lost.
#[must_use]
pub fn stateful_set(name: &str, replicas: u32) -> Value {
    let labels = json!({"app": name});
    let apart = json!({"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"});
    let patience = ["unreachable", "not-ready"].map(|taint| {
        json!({
            "key": format!("node.kubernetes.io/{taint}"),
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 3600,
        })
    });
    json!({
        "metadata": {"name": name},
        "spec": {
            "serviceName": name,
            "replicas": replicas,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "terminationGracePeriodSeconds": 30,
                    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}},
                    "tolerations": patience,
                    "containers": [{"name": "main", "image": "none", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
                },
            },
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": CLASS,
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }],
        },
    })
}
