//! The content of Debian packages, without installing them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::apt;
use crate::error::{XtaskError, at};
use crate::workspace::carry_out_quietly;

/// Downloads packages into a folder and unpacks them there. Returns the folder with their content.
pub fn unpacked(packages: &[&str], folder: &Path) -> Result<PathBuf, XtaskError> {
    let root = folder.join("root");
    std::fs::create_dir_all(&root).map_err(at(&root))?;
    apt::download(packages, folder)?;
    for archive in archives(folder)? {
        unpack(&archive, &root)?;
    }
    Ok(root)
}

fn archives(folder: &Path) -> Result<Vec<PathBuf>, XtaskError> {
    let entries = std::fs::read_dir(folder).map_err(at(folder))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths
        .filter(|path| path.extension().is_some_and(|end| end == "deb"))
        .collect())
}

fn unpack(archive: &Path, root: &Path) -> Result<(), XtaskError> {
    let mut dpkg = Command::new("dpkg");
    carry_out_quietly(dpkg.arg("-x").args([archive, root]), "dpkg -x")
}
