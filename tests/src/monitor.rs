//! A monitor that says again and again how it sees a host.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio_util::task::AbortOnDropHandle;

use crate::Client;

/// Between two reports.
const EVERY: Duration = Duration::from_millis(250);

/// Reports for as long as it is kept.
pub struct Monitor {
    _reporting: AbortOnDropHandle<()>,
}

impl Client {
    /// Reports the host UP until what comes back is dropped.
    pub fn keep_seeing(&self, host: &str) -> Monitor {
        self.keep_reporting(host, "UP", None)
    }

    /// Reports the host UNREACHABLE until what comes back is dropped: by a monitor that heard it last at that moment, or never.
    pub fn keep_missing(&self, host: &str, last_seen_at: Option<DateTime<Utc>>) -> Monitor {
        self.keep_reporting(host, "UNREACHABLE", last_seen_at)
    }

    fn keep_reporting(
        &self,
        host: &str,
        state: &'static str,
        last_seen_at: Option<DateTime<Utc>>,
    ) -> Monitor {
        let (client, host) = (self.clone(), host.to_owned());
        let reporting = async move {
            loop {
                client.reports(&host, state, last_seen_at).await;
                tokio::time::sleep(EVERY).await;
            }
        };
        Monitor {
            _reporting: AbortOnDropHandle::new(tokio::spawn(reporting)),
        }
    }
}
