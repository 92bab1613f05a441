//! What the driver `ironic` needs of a cloud.

use crate::openstack::Cloud;
use crate::openstack::cloud::unless_gone;
use crate::openstack::rights::{FailedCall, NOBODY, failed};

impl Cloud {
    pub(in crate::openstack) async fn failing_calls_of_ironic(&self) -> Vec<FailedCall> {
        let maintenance = self.begin_maintenance(NOBODY, "tried by ringfence doctor");
        failed([
            ("list the nodes (GET nodes)", self.try_listing_nodes().await),
            (
                "keep Ironic's hands off a node (PUT maintenance)",
                unless_gone(maintenance.await).map(drop),
            ),
        ])
    }
}
