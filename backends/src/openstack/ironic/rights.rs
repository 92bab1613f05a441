//! The rights that the driver `ironic` needs in a cloud.

use crate::openstack::Cloud;
use crate::openstack::cloud::unless_gone;
use crate::openstack::rights::{FailedCall, NO_SUCH_ID, failed};

impl Cloud {
    pub(in crate::openstack) async fn failing_calls_of_ironic(&self) -> Vec<FailedCall> {
        let maintenance = self.begin_maintenance(NO_SUCH_ID, "tried by ringfence doctor");
        failed([
            ("list the nodes (GET nodes)", self.try_listing_nodes().await),
            (
                "begin maintenance of a node (PUT maintenance)",
                unless_gone(maintenance.await).map(drop),
            ),
        ])
    }
}
