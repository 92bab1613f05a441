//! Ringfence's own lease in a cluster: that it was written, and was seen to change, shows that the leases of nodes would be seen too.

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

const NAME: &str = "ringfence-observer";
/// The name under which the cluster records what Ringfence has written.
pub(super) const WRITER: &str = "ringfence";

/// The lease, and how often it was written.
pub(super) struct Beat {
    leases: Api<Lease>,
    count: u16,
}

impl Beat {
    pub fn new(client: Client, namespace: &str) -> Self {
        Self {
            leases: Api::namespaced(client, namespace),
            count: 0,
        }
    }

    /// Writes it. The count differs from the last one, so that the cluster has something to write.
    pub async fn write(&mut self) -> Result<(), kube::Error> {
        self.count = self.count.wrapping_add(1);
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": NAME },
            "spec": { "holderIdentity": WRITER, "leaseTransitions": self.count },
        });
        let how = PatchParams::apply(WRITER).force();
        self.leases
            .patch(NAME, &how, &Patch::Apply(lease))
            .await
            .map(drop)
    }
}
