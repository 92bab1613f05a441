//! What the driver `ironic` needs of a cloud.

use osauth::Session;
use osauth::services::BAREMETAL;
use serde_json::Value;

use super::{IRONIC, versioned};
use crate::BackendError;
use crate::openstack::Cloud;
use crate::openstack::rights::{FailedCall, NOBODY, failed, none_is_fine};

impl Cloud {
    pub(in crate::openstack) async fn failing_calls_of_ironic(&self) -> Vec<FailedCall> {
        failed([
            ("list the nodes (GET nodes)", self.try_listing_nodes().await),
            (
                "keep Ironic's hands off a node (PUT maintenance)",
                none_is_fine(self.begin_maintenance(NOBODY, "tried by ringfence doctor").await),
            ),
        ])
    }

    async fn try_listing_nodes(&self) -> Result<(), BackendError> {
        let call = |session: Session| async move {
            let query = [("limit", "1"), ("fields", "uuid")];
            let request = session.get(BAREMETAL, &["nodes"]).query(&query);
            versioned(request).fetch::<Value>().await.map(drop)
        };
        self.again(IRONIC, call).await
    }
}
