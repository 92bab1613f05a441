//! The settings of a server's volume, noted on the volume while it is detached from the server and attached again: the next attempt after a
//! crash reads them there, and so can the volume's owner.

use std::collections::BTreeMap;

use crate::BackendError;
use crate::openstack::{Cloud, ServerVolume, Volume};

/// The host for which the volume is detached; volumes are found by this note, and it is taken off last.
pub(super) const HOST: &str = "ringfence_host";
const SERVER: &str = "ringfence_server";
const DEVICE: &str = "ringfence_device";
const TAG: &str = "ringfence_tag";
const GOES_WITH_SERVER: &str = "ringfence_delete_on_termination";

/// The settings that are noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub server: String,
    pub volume: ServerVolume,
}

impl Note {
    /// The notes of a volume; `None` if some are missing, as when their writer died.
    pub fn of(volume: &Volume) -> Option<Self> {
        let note = |name: &str| volume.metadata.get(name).cloned();
        Some(Self {
            server: note(SERVER)?,
            volume: ServerVolume {
                volume: volume.id.clone(),
                attachment_id: None,
                device: note(DEVICE),
                tag: note(TAG),
                delete_on_termination: note(GOES_WITH_SERVER)? == "true",
            },
        })
    }

    /// Writes all notes in one call, so that either all or none are there.
    pub async fn write(&self, cloud: &Cloud, host: &str) -> Result<(), BackendError> {
        let volume = &self.volume;
        let mut notes = BTreeMap::from([
            (HOST, host.to_owned()),
            (SERVER, self.server.clone()),
            (GOES_WITH_SERVER, volume.delete_on_termination.to_string()),
        ]);
        notes.extend(volume.device.clone().map(|device| (DEVICE, device)));
        notes.extend(volume.tag.clone().map(|tag| (TAG, tag)));
        cloud.note(&volume.volume, &notes).await
    }

    /// Takes all notes off.
    pub async fn take_off(cloud: &Cloud, volume: &str) -> Result<(), BackendError> {
        for name in [SERVER, DEVICE, TAG, GOES_WITH_SERVER, HOST] {
            cloud.take_note_off(volume, name).await?;
        }
        Ok(())
    }
}
