//! Nova's records of evacuations. The crate has none of its migrations.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::request::Request;
use super::service::NOVA;
use crate::BackendError;
use crate::openstack::{Cloud, time};

/// What a listing of them stands under.
const KEY: &str = "migrations";
/// Records of one page, if Nova is allowed so many.
const PAGE: &str = "500";
/// The evacuations of a host that are read again and again.
const NEWEST: &str = "100";
/// The most records of one host or server, of all its time.
const MOST: usize = 50_000;

/// How far an evacuation is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvacuationStatus {
    /// Nova has taken it.
    Accepted,
    /// A host was found.
    PreMigrating,
    /// The server is elsewhere; what is left of it on its host has not been destroyed.
    Done,
    /// Its host has destroyed what was left of it.
    Completed,
    /// It has failed.
    #[serde(alias = "error")]
    Failed,
    /// Any other.
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
    /// Whether Nova is still at it.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        matches!(self, Self::Accepted | Self::PreMigrating)
    }

    /// Whether the host that the server was on has still to destroy what is left of it, when its `nova-compute` starts.
    #[must_use]
    pub fn leaves_remains(&self) -> bool {
        matches!(self, Self::Accepted | Self::PreMigrating | Self::Done)
    }
}

/// One evacuation of one server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Evacuation {
    /// Its number, which grows.
    pub id: u64,
    /// The server.
    #[serde(rename = "instance_uuid")]
    pub server: String,
    /// How far it is.
    pub status: EvacuationStatus,
    /// The host that it was on.
    #[serde(rename = "source_compute")]
    pub from: Option<String>,
    /// The host that it goes to.
    #[serde(rename = "dest_compute")]
    pub to: Option<String>,
    /// When it was asked for.
    #[serde(default, deserialize_with = "time::optional")]
    pub created_at: Option<DateTime<Utc>>,
}

#[derive(Deserialize)]
struct Record {
    uuid: String,
    #[serde(flatten)]
    evacuation: Evacuation,
}

/// How many servers still have something on the host that they were on. Only the last evacuation of each counts: one whose destination has
/// died stays as it was for ever.
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

    /// The newest evacuations from a host that Nova has on record, the oldest of them first, and whether these are all.
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
