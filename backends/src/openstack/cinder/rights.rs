//! What the driver `cinder` needs of a cloud.

use osauth::Session;
use serde_json::Value;

use super::{CINDER, get};
use crate::BackendError;
use crate::openstack::Cloud;
use crate::openstack::rights::{FailedCall, NOBODY, failed, none_is_fine};

impl Cloud {
    pub(in crate::openstack) async fn failing_calls_of_cinder(&self) -> Vec<FailedCall> {
        failed([
            (
                "list the volumes of all projects (GET volumes)",
                self.try_listing(&["volumes", "detail"]).await,
            ),
            (
                "list the attachments of all projects (GET attachments)",
                self.try_listing(&["attachments", "detail"]).await,
            ),
            (
                "know the attachments of a server (GET os-volume_attachments of Nova)",
                none_is_fine(self.volumes_of(NOBODY).await.map(drop)),
            ),
            (
                "disconnect a host (DELETE attachments)",
                self.has_service_role().await,
            ),
        ])
    }

    async fn try_listing(&self, path: &[&str]) -> Result<(), BackendError> {
        let call = |session: Session| async move {
            let query = [("all_tenants", "1"), ("limit", "1")];
            get(&session, path).query(&query).fetch::<Value>().await.map(drop)
        };
        self.again(CINDER, call).await
    }
}
