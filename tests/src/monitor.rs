//! A monitor that says again and again how it sees a host.

use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;

use crate::Client;

/// Between two reports.
const EVERY: Duration = Duration::from_millis(250);

/// Reports for as long as it is kept.
pub struct Monitor {
    _reporting: AbortOnDropHandle<()>,
}

impl Client {
    /// Reports the host so until what comes back is dropped.
    pub fn keep_seeing(&self, host: &str, state: &'static str) -> Monitor {
        let (client, host) = (self.clone(), host.to_owned());
        let reporting = async move {
            loop {
                client.seen(&host, state).await;
                tokio::time::sleep(EVERY).await;
            }
        };
        Monitor {
            _reporting: AbortOnDropHandle::new(tokio::spawn(reporting)),
        }
    }
}
