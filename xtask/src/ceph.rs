//! Ceph from Debian's packages, without installing them: they bring daemons, users and tools for disks.

use std::path::{Path, PathBuf};

use ringfence_lab::CephPrograms;

use crate::error::{XtaskError, at, in_short};
use crate::python::take_turn;
use crate::say::say;
use crate::workspace::Workspace;
use crate::{apt, deb};

/// With what they need they have nearly all. The monitor needs no more.
const DAEMONS: [&str; 2] = ["ceph-osd", "ceph-mgr"];
const MONITOR: &str = "ceph-mon";
/// The beginnings of the names of packages with programs, libraries and modules. The others are tools for disks.
const NEEDED: [&str; 3] = ["ceph-", "lib", "python3-"];

/// Whether there can be a Ceph.
pub enum Ceph {
    /// The folder for `ringfence_lab::CephPrograms`.
    There(PathBuf),
    /// Why there is none.
    Absent(String),
}

/// Unpacks the programs unless the machine has them, or they are unpacked. Without packages there is no Ceph, which is no error.
pub fn provide(workspace: &Workspace) -> Result<Ceph, XtaskError> {
    if !cfg!(target_arch = "x86_64") {
        return Ok(Ceph::Absent(
            "its libraries are looked for in folders of another architecture than this machine's".to_owned(),
        ));
    }
    let installed = PathBuf::from("/");
    if CephPrograms::new(installed.clone()).are_complete() {
        return Ok(Ceph::There(installed));
    }
    let folder = workspace.cache("ceph")?;
    let _turn = take_turn(&folder)?;
    let ready = folder.join("root");
    if CephPrograms::new(ready.clone()).are_complete() {
        return Ok(Ceph::There(ready));
    }
    say(&format!("unpacking Ceph into {}", ready.display()));
    let beside = folder.join("new");
    // An interrupted run may have left half a package.
    let _ = std::fs::remove_dir_all(&beside);
    std::fs::create_dir_all(&beside).map_err(at(&beside))?;
    match unpacked(&beside) {
        Ok(root) => std::fs::rename(&root, &ready).map_err(at(&ready))?,
        Err(error) => return Ok(Ceph::Absent(in_short(&error))),
    }
    std::fs::remove_dir_all(&beside).map_err(at(&beside))?;
    Ok(Ceph::There(ready))
}

fn unpacked(folder: &Path) -> Result<PathBuf, XtaskError> {
    let mut packages = apt::would_install(&DAEMONS, folder)?;
    packages.retain(|name| NEEDED.iter().any(|beginning| name.starts_with(beginning)));
    packages.push(MONITOR.to_owned());
    let names: Vec<_> = packages.iter().map(String::as_str).collect();
    let root = deb::unpacked(&names, folder)?;
    if CephPrograms::new(root.clone()).are_complete() {
        return Ok(root);
    }
    Err(XtaskError::Absent {
        program: "apt-get download ceph-osd ceph-mgr",
        what: "where all programs of Ceph are",
    })
}
