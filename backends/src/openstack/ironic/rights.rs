//! The rights that the driver `ironic` needs in a cloud.

use openstack::baremetal::NodeFilter;
use openstack::session::Session;

use crate::BackendError;
use crate::openstack::Cloud;
use crate::openstack::beyond::IRONIC_API;
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

    async fn try_listing_nodes(&self) -> Result<(), BackendError> {
        let call = |session: Session| async move {
            let nodes = openstack::Cloud::from(session).find_baremetal_nodes();
            Box::pin(nodes.with(NodeFilter::Limit(1)).all()).await.map(drop)
        };
        self.again(IRONIC_API.name, call).await
    }
}
