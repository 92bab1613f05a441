//! Nova's records of moved servers.

use std::time::Duration;

use serde::Deserialize;

use crate::cloud::wait::{Seen, wait_for};
use crate::cloud::{Api, Cloud};
use crate::error::LabError;

const LIMIT: Duration = Duration::from_secs(120);

/// A record of one move of one server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Migration {
    /// The record's id.
    pub uuid: String,
    /// The server.
    pub instance_uuid: String,
    /// The host before the move.
    pub source_compute: String,
    /// The destination, once Nova has chosen it.
    pub dest_compute: Option<String>,
    /// `accepted`, `pre-migrating`, `done`, `completed`, `error`, `failed`.
    pub status: String,
}

impl Cloud {
    /// The evacuations from a host.
    ///
    /// # Errors
    /// If Nova cannot be reached.
    pub fn evacuations(&self, host: &str) -> Result<Vec<Migration>, LabError> {
        let path = format!("/os-migrations?source_compute={host}&migration_type=evacuation");
        self.find(Api::Compute, &path, "migrations")
    }

    /// Waits until so many evacuations from a host have this status, and none has another.
    ///
    /// # Errors
    /// If that takes more than two minutes.
    pub fn wait_evacuations(
        &self,
        host: &str,
        count: usize,
        status: &str,
    ) -> Result<Vec<Migration>, LabError> {
        wait_for(
            || format!("{count} evacuations of {host} with the status {status}"),
            LIMIT,
            || {
                let all = self.evacuations(host)?;
                let so_far = all.iter().filter(|one| one.status == status).count();
                Ok(if so_far == count && all.len() == count {
                    Seen::Enough(all)
                } else {
                    Seen::NotYet(format!("{all:?}"))
                })
            },
        )
    }
}
