//! Volumes: where they are, and what is noted on them.

use std::collections::BTreeMap;

use osauth::Session;
use serde::Deserialize;
use serde_json::json;

use super::{CINDER, delete, get, post};
use crate::BackendError;
use crate::openstack::Cloud;
use crate::openstack::listing::{Link, Page};

/// Volumes of one page, if Cinder is allowed so many.
const PAGE: &str = "200";
/// The most volumes with one note.
const MOST: usize = 10_000;

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Volume {
    /// Its id.
    pub id: String,
    /// `available`, `reserved`, `in-use`, `detaching` and others.
    pub status: String,
    /// What is noted on it.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// The project that it belongs to, as administrators see it.
    #[serde(rename = "os-vol-tenant-attr:tenant_id", default)]
    pub project: Option<String>,
    #[serde(rename = "os-vol-host-attr:host", default)]
    place: Option<String>,
}

impl Volume {
    /// The backend that it is on: `HOST@BACKEND#POOL` is how Cinder writes it, and shows it to administrators.
    #[must_use]
    pub fn backend(&self) -> Option<&str> {
        let (_, rest) = self.place.as_deref()?.split_once('@')?;
        Some(rest.split_once('#').map_or(rest, |(backend, _)| backend))
    }
}

#[derive(Deserialize)]
struct One {
    volume: Volume,
}

#[derive(Deserialize)]
struct Volumes {
    volumes: Vec<Volume>,
    #[serde(default, rename = "volumes_links")]
    links: Vec<Link>,
}

impl Cloud {
    /// A volume; `None` if there is none.
    pub async fn volume(&self, id: &str) -> Result<Option<Volume>, BackendError> {
        let call = |session: Session| async move { get(&session, &["volumes", id]).fetch::<One>().await };
        match self.again(CINDER, call).await {
            Ok(one) => Ok(Some(one.volume)),
            Err(BackendError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All volumes with this note, of all projects.
    pub async fn volumes_noted(&self, name: &str, value: &str) -> Result<Vec<Volume>, BackendError> {
        // As Cinder reads it: a dictionary of Python's.
        let filter = &json!({ name: value }).to_string();
        let page = |marker| self.page_of_volumes(filter, marker);
        let mut all = self
            .all_pages(CINDER, MOST, |volume: &Volume| volume.id.clone(), page)
            .await?;
        all.retain(|volume| volume.metadata.get(name).map(String::as_str) == Some(value));
        Ok(all)
    }

    async fn page_of_volumes(
        &self,
        filter: &str,
        marker: Option<String>,
    ) -> Result<Page<Volume>, BackendError> {
        let mut query = vec![("all_tenants", "1"), ("metadata", filter), ("limit", PAGE)];
        query.extend(marker.as_deref().map(|marker| ("marker", marker)));
        let query = &query;
        let call = |session: Session| async move {
            get(&session, &["volumes", "detail"])
                .query(query)
                .fetch::<Volumes>()
                .await
        };
        let found = self.again(CINDER, call).await?;
        Ok(Page::new(found.volumes, &found.links))
    }

    /// Writes notes on a volume, where its owner can see them.
    pub async fn note(&self, volume: &str, notes: &BTreeMap<&str, String>) -> Result<(), BackendError> {
        let body = &json!({ "metadata": notes });
        let call = |session: Session| async move {
            let request = post(&session, &["volumes", volume, "metadata"]).json(body);
            request.send().await.map(|_| ())
        };
        self.again(CINDER, call).await
    }

    /// Takes a note off a volume; one that is gone is as good.
    pub async fn take_note_off(&self, volume: &str, name: &str) -> Result<(), BackendError> {
        let call = |session: Session| async move {
            let request = delete(&session, &["volumes", volume, "metadata", name]);
            request.send().await.map(|_| ())
        };
        match self.again(CINDER, call).await {
            Err(BackendError::NotFound { .. }) => Ok(()),
            done => done,
        }
    }

    /// Declares what a volume's status is, and whether it is attached if that is said too. Changes Cinder's database and nothing else, but
    /// that "detached" would delete every attachment with it.
    pub async fn declare_volume(
        &self,
        volume: &str,
        status: &str,
        attach_status: Option<&str>,
    ) -> Result<(), BackendError> {
        let mut wanted = json!({ "status": status });
        if let Some(attach_status) = attach_status {
            wanted["attach_status"] = json!(attach_status);
        }
        let body = &json!({ "os-reset_status": wanted });
        let call = |session: Session| async move {
            let request = post(&session, &["volumes", volume, "action"]).json(body);
            request.send().await.map(|_| ())
        };
        self.again(CINDER, call).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_stands_between_two_signs() {
        let backend = |place: Option<&str>| {
            let volume = Volume {
                id: String::new(),
                status: String::new(),
                project: None,
                metadata: BTreeMap::new(),
                place: place.map(str::to_owned),
            };
            volume.backend().map(str::to_owned)
        };
        assert_eq!(
            backend(Some("controller@array-2#gold")).as_deref(),
            Some("array-2")
        );
        assert_eq!(backend(Some("controller@lvm")).as_deref(), Some("lvm"));
        assert_eq!(backend(Some("controller")), None);
        assert_eq!(backend(None), None);
    }
}
