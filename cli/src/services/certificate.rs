//! Following the files of a certificate that other programs renew.

use std::time::Duration;

use ringfence_api::Reload;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::clock::now;

/// Between two looks at the files.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Reads certificate and key again when they were changed, for as long as the value lives.
pub fn follow(reload: Reload) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            sleep(LOOK_EVERY).await;
            reload.certificate_if_changed(now());
        }
    }))
}
