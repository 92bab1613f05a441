//! A monitor that reports a host's failure state again and again.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio_util::task::AbortOnDropHandle;

use crate::Client;

/// Between two reports.
const EVERY: Duration = Duration::from_millis(250);

/// Reports until it is dropped.
pub struct Monitor {
    _reporting: AbortOnDropHandle<()>,
}

impl Client {
    /// Reports the host UP until the returned monitor is dropped.
    pub fn keep_seeing(&self, host: &str) -> Monitor {
        self.keep_reporting(host, "UP", None)
    }

    /// Reports the host UNREACHABLE until the returned monitor is dropped: as a monitor that heard the host last at this moment, or never.
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
