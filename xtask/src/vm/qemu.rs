//! QEMU from Debian's packages, without installing them: they would remove the tools of another QEMU that a machine may have.

use std::path::Path;

use ringfence_lab::{VmImage, find_program};

use crate::error::{XtaskError, at};
use crate::{apt, deb};

const PACKAGE: &str = "qemu-system-x86";

/// Downloads and unpacks QEMU with its missing dependencies, unless the machine has a QEMU.
pub fn provide(folder: &Path) -> Result<(), XtaskError> {
    let ready = folder.join(VmImage::QEMU_FOLDER);
    if find_program(VmImage::QEMU).is_some() || ready.is_dir() {
        return Ok(());
    }
    let beside = folder.join("qemu.new");
    // An interrupted run may have left half a package.
    let _ = std::fs::remove_dir_all(&beside);
    std::fs::create_dir_all(&beside).map_err(at(&beside))?;
    let packages = apt::would_install(&[PACKAGE], &beside)?;
    let names: Vec<_> = packages.iter().map(String::as_str).collect();
    let root = deb::unpacked(&names, &beside)?;
    if !root.join("usr/bin").join(VmImage::QEMU).is_file() {
        return Err(XtaskError::Absent {
            program: "apt-get download qemu-system-x86",
            what: "where QEMU is",
        });
    }
    std::fs::rename(&root, &ready).map_err(at(&ready))?;
    std::fs::remove_dir_all(&beside).map_err(at(&beside))
}
