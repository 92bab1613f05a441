//! Volumes: their backends, and their notes (metadata). The crate looks for Cinder under `block-storage`, which most catalogues do not
//! have, cannot read a volume without a name, and filters neither for all projects nor by a note.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

use super::service::CINDER_API;
use crate::BackendError;
use crate::openstack::Cloud;
use crate::openstack::cloud::unless_gone;

/// Volumes of one page, if Cinder allows so many.
const PAGE: &str = "200";
/// The most volumes that are read with one note.
const MOST: usize = 10_000;

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Volume {
    /// The volume's id.
    pub id: String,
    /// `available`, `reserved`, `in-use`, `detaching` and others.
    pub status: String,
    /// The notes on the volume.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// The project that the volume belongs to; Cinder shows it to administrators.
    #[serde(rename = "os-vol-tenant-attr:tenant_id", default)]
    pub project: Option<String>,
    #[serde(rename = "os-vol-host-attr:host", default)]
    place: Option<String>,
}

impl Volume {
    /// The backend that the volume is on. Cinder writes `HOST@BACKEND#POOL`, and shows it to administrators.
    #[must_use]
    pub fn backend(&self) -> Option<&str> {
        let (_, rest) = self.place.as_deref()?.split_once('@')?;
        Some(rest.split_once('#').map_or(rest, |(backend, _)| backend))
    }
}

impl Cloud {
    /// A volume; `None` if Cinder knows none.
    pub async fn volume(&self, id: &str) -> Result<Option<Volume>, BackendError> {
        unless_gone(self.get(CINDER_API, &["volumes", id]).read("volume").await)
    }

    /// All volumes with this note, of all projects.
    pub async fn volumes_noted(&self, name: &str, value: &str) -> Result<Vec<Volume>, BackendError> {
        // Cinder reads the filter as a dictionary of Python's.
        let filter = json!({ name: value }).to_string();
        let query = [
            ("all_tenants", "1"),
            ("metadata", filter.as_str()),
            ("limit", PAGE),
        ];
        let request = self.get(CINDER_API, &["volumes", "detail"]).query(&query);
        let mut all = request.all("volumes", MOST, |volume: &Volume| &volume.id).await?;
        all.retain(|volume| volume.metadata.get(name).map(String::as_str) == Some(value));
        Ok(all)
    }

    /// Writes notes on a volume; its owner can see them.
    pub async fn note(&self, volume: &str, notes: &BTreeMap<&str, String>) -> Result<(), BackendError> {
        let request = self.post(CINDER_API, &["volumes", volume, "metadata"]);
        request
            .json(json!({ "metadata": notes }))
            .repeatable()
            .send()
            .await
    }

    /// Takes a note off a volume; a note that is gone counts as taken off.
    pub async fn take_note_off(&self, volume: &str, name: &str) -> Result<(), BackendError> {
        let request = self.delete(CINDER_API, &["volumes", volume, "metadata", name]);
        unless_gone(request.repeatable().send().await).map(drop)
    }

    /// Declares a volume's status, and whether the volume is attached if the caller says so. Only Cinder's database changes; but "detached"
    /// would delete every attachment of the volume.
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
        let request = self.post(CINDER_API, &["volumes", volume, "action"]);
        request
            .json(json!({ "os-reset_status": wanted }))
            .repeatable()
            .send()
            .await
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
