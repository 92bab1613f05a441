//! Nova's records of evacuations. The crate has none of its migrations.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::request::Request;
use super::service::NOVA;
use crate::BackendError;
use crate::openstack::{Cloud, time};

/// The key of a listing of migrations.
const KEY: &str = "migrations";
/// Records of one page, if Nova allows so many.
const PAGE: &str = "500";
/// How many of a host's evacuations are read in each look.
const NEWEST: &str = "100";
/// The most records that are read of one host or server.
const MOST: usize = 50_000;

/// The state of an evacuation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvacuationStatus {
    /// Nova has accepted the request.
    Accepted,
    /// The scheduler has found a host.
    PreMigrating,
    /// The server is on the new host; the old host has not yet destroyed its remains.
    Done,
    /// The old host has destroyed the server's remains.
    Completed,
    /// The evacuation has failed.
    #[serde(alias = "error")]
    Failed,
    /// Any other state.
    #[serde(untagged)]
    Other(String),
}

impl fmt::Display for EvacuationStatus {
    /// In Nova's words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Accepted => "accepted",
            Self::PreMigrating => "pre-migrating",
            Self::Done => "done",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Other(word) => word,
        })
    }
}

impl EvacuationStatus {
    /// Whether Nova is still carrying the evacuation out.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        matches!(self, Self::Accepted | Self::PreMigrating)
    }

    /// Whether the old host has still to destroy the server's remains, when its `nova-compute` starts.
    #[must_use]
    pub fn leaves_remains(&self) -> bool {
        matches!(self, Self::Accepted | Self::PreMigrating | Self::Done)
    }
}

/// One evacuation of one server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Evacuation {
    /// The record's number; later records have higher numbers.
    pub id: u64,
    /// The server's id.
    #[serde(rename = "instance_uuid")]
    pub server: String,
    /// The state of the evacuation.
    pub status: EvacuationStatus,
    /// The host that the server was on.
    #[serde(rename = "source_compute")]
    pub from: Option<String>,
    /// The host that the server goes to.
    #[serde(rename = "dest_compute")]
    pub to: Option<String>,
    /// When the evacuation was asked for.
    #[serde(default, deserialize_with = "time::optional")]
    pub created_at: Option<DateTime<Utc>>,
}

#[derive(Deserialize)]
struct Record {
    uuid: String,
    #[serde(flatten)]
    evacuation: Evacuation,
}

/// How many servers still have remains on the host that they were on. Only the last evacuation of each server counts: an evacuation whose
/// destination has died keeps its state for ever.
#[must_use]
pub fn with_remains(oldest_first: &[Evacuation]) -> usize {
    let last: BTreeMap<&str, &Evacuation> = oldest_first
        .iter()
        .map(|evacuation| (evacuation.server.as_str(), evacuation))
        .collect();
    last.values()
        .filter(|evacuation| evacuation.status.leaves_remains())
        .count()
}

impl Cloud {
    /// All evacuations from a host that Nova has on record, the oldest first.
    pub async fn evacuations_from(&self, host: &str) -> Result<Vec<Evacuation>, BackendError> {
        let mut found = self.evacuations(("source_compute", host)).await?;
        found.retain(|evacuation| evacuation.from.as_deref() == Some(host));
        Ok(found)
    }

    /// The newest evacuations from a host that Nova has on record, the oldest of them first, and whether there are no more.
    pub async fn newest_evacuations_from(&self, host: &str) -> Result<(Vec<Evacuation>, bool), BackendError> {
        let page = self
            .migrations(("source_compute", host), NEWEST)
            .page(KEY)
            .await?;
        let mut found = oldest_first(page.items);
        found.retain(|evacuation| evacuation.from.as_deref() == Some(host));
        Ok((found, !page.goes_on))
    }

    /// All evacuations of a server that Nova has on record, the oldest first.
    pub async fn evacuations_of(&self, server: &str) -> Result<Vec<Evacuation>, BackendError> {
        let mut found = self.evacuations(("instance_uuid", server)).await?;
        found.retain(|evacuation| evacuation.server == server);
        Ok(found)
    }

    async fn evacuations(&self, of: (&str, &str)) -> Result<Vec<Evacuation>, BackendError> {
        let all = self
            .migrations(of, PAGE)
            .all(KEY, MOST, |record: &Record| &record.uuid)
            .await?;
        Ok(oldest_first(all))
    }

    /// Nova gives the newest first.
    fn migrations<'a>(&'a self, of: (&'a str, &'a str), limit: &'a str) -> Request<'a> {
        self.get(NOVA, &["os-migrations"])
            .query(&[of, ("migration_type", "evacuation"), ("limit", limit)])
    }
}

fn oldest_first(records: Vec<Record>) -> Vec<Evacuation> {
    let mut all: Vec<Evacuation> = records.into_iter().map(|record| record.evacuation).collect();
    all.sort_by_key(|evacuation| evacuation.id);
    all
}
