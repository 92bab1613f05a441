//! How a server had a volume, noted on the volume while it is taken from the server and given back: whoever goes on after a crash finds
//! it there, and so does the volume's owner.

use std::collections::BTreeMap;

use crate::BackendError;
use crate::openstack::{Cloud, ServerVolume, Volume};

/// The host for which it is done; the notes are found by it, and it is the last to go.
pub(super) const HOST: &str = "ringfence_host";
const SERVER: &str = "ringfence_server";
const DEVICE: &str = "ringfence_device";
const TAG: &str = "ringfence_tag";
const GOES_WITH_SERVER: &str = "ringfence_delete_on_termination";

/// What is noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub server: String,
    pub volume: ServerVolume,
}

impl Note {
    /// What a volume's notes say; `None` if they are not whole, as when their writer died.
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

    /// All at once, so that they are whole or not there.
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

    /// Takes all of them off.
    pub async fn take_off(cloud: &Cloud, volume: &str) -> Result<(), BackendError> {
        for name in [SERVER, DEVICE, TAG, GOES_WITH_SERVER, HOST] {
            cloud.take_note_off(volume, name).await?;
        }
        Ok(())
    }
}
