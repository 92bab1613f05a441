//! The simulators, used as by the workers' driver and by a person with `curl`.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod devices;
mod persistence;

use std::path::PathBuf;
use std::time::Duration;

use reqwest::{Client, StatusCode};
use ringfence_simulators::{Handle, Simulators, World};
use serde_json::Value;

/// More than the time of any answer, and less than any silence.
const PATIENCE: Duration = Duration::from_millis(700);

struct Lab {
    handle: Handle,
    client: Client,
}

impl Lab {
    fn start(state_file: Option<PathBuf>) -> Self {
        let mut world = World::default();
        world.add_host("a").unwrap();
        let handle = Simulators::start(([127, 0, 0, 1], 0).into(), state_file, world).unwrap();
        // The client needs a TLS provider even for plain HTTP; another test may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().build().unwrap();
        Self { handle, client }
    }

    async fn put(&self, path: &str, body: Value) -> StatusCode {
        let request = self.client.put(self.url(path)).json(&body);
        request.send().await.unwrap().status()
    }

    async fn get(&self, path: &str) -> (StatusCode, Value) {
        let response = self.client.get(self.url(path)).send().await.unwrap();
        let status = response.status();
        (
            status,
            response.json().await.expect("the answer to a reading is no JSON"),
        )
    }

    /// Whether a command was answered within the time limit.
    async fn is_answered(&self, path: &str, body: Value) -> bool {
        let request = self.client.put(self.url(path)).json(&body).timeout(PATIENCE);
        request.send().await.is_ok()
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.handle.url())
    }
}
