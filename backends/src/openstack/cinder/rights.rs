//! The rights that the driver `cinder` needs in a cloud.

use serde::de::IgnoredAny;

use crate::BackendError;
use crate::openstack::Cloud;
use crate::openstack::beyond::CINDER_API;
use crate::openstack::cloud::unless_gone;
use crate::openstack::rights::{FailedCall, NO_SUCH_ID, failed};

impl Cloud {
    pub(in crate::openstack) async fn failing_calls_of_cinder(&self) -> Vec<FailedCall> {
        failed([
            (
                "list the volumes of all projects (GET volumes)",
                self.try_listing("volumes").await,
            ),
            (
                "list the attachments of all projects (GET attachments)",
                self.try_listing("attachments").await,
            ),
            (
                "read the attachments of a server (GET os-volume_attachments of Nova)",
                unless_gone(self.volumes_of(NO_SUCH_ID).await).map(drop),
            ),
            (
                "disconnect a host (DELETE attachments)",
                self.has_service_role().await,
            ),
        ])
    }

    async fn try_listing(&self, what: &str) -> Result<(), BackendError> {
        let request = self.get(CINDER_API, &[what, "detail"]);
        let one = request.query(&[("all_tenants", "1"), ("limit", "1")]);
        one.read::<IgnoredAny>(what).await.map(drop)
    }
}
