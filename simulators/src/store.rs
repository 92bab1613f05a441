//! The world in a file.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::{SimulatorError, World};

/// Reads the world, or `None` if the file does not exist.
pub(crate) fn load(path: &Path) -> Result<Option<World>, SimulatorError> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(SimulatorError::StateFile {
                verb: "read",
                path: path.to_owned(),
                source,
            });
        }
    };
    let world = serde_json::from_slice(&text).map_err(|source| SimulatorError::NotAState {
        path: path.to_owned(),
        source,
    })?;
    Ok(Some(world))
}

/// Writes the world in a way that leaves the old file or the new one after a kill or a loss of power.
pub(crate) fn save(path: &Path, world: &World) -> Result<(), SimulatorError> {
    let write = || -> io::Result<()> {
        let text = serde_json::to_vec_pretty(world)?;
        let beside = temporary(path);
        let mut file = File::create(&beside)?;
        file.write_all(&text)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)?;
        File::open(folder(path))?.sync_all()
    };
    write().map_err(|source| SimulatorError::StateFile {
        verb: "write",
        path: path.to_owned(),
        source,
    })
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

fn folder(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}
