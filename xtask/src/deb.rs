//! The content of Debian packages, without installing them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::apt;
use crate::error::XtaskError;

/// Downloads packages into a folder and unpacks them there. Returns the folder with their content.
pub fn unpacked(packages: &[&str], folder: &Path) -> Result<PathBuf, XtaskError> {
    let root = folder.join("root");
    std::fs::create_dir_all(&root).map_err(|source| XtaskError::File {
        path: root.clone(),
        source,
    })?;
    apt::download(packages, folder)?;
    for archive in archives(folder)? {
        unpack(&archive, &root)?;
    }
    Ok(root)
}

fn archives(folder: &Path) -> Result<Vec<PathBuf>, XtaskError> {
    let entries = std::fs::read_dir(folder).map_err(|source| XtaskError::File {
        path: folder.to_owned(),
        source,
    })?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths
        .filter(|path| path.extension().is_some_and(|end| end == "deb"))
        .collect())
}

fn unpack(archive: &Path, root: &Path) -> Result<(), XtaskError> {
    let program = "dpkg -x".to_owned();
    let done = Command::new("dpkg")
        .arg("-x")
        .args([archive, root])
        .stdin(Stdio::null())
        .output();
    let done = done.map_err(|source| XtaskError::Spawn {
        program: program.clone(),
        source,
    })?;
    if done.status.success() {
        return Ok(());
    }
    Err(XtaskError::Failed {
        program,
        status: done.status.to_string(),
        output: String::from_utf8_lossy(&done.stderr).into_owned(),
    })
}
