//! The first file system of virtual hosts, and the only one: busybox, the kernel's modules and the program that writes.

use std::path::{Path, PathBuf};
use std::process::Command;

use ringfence_lab::{VmImage, find_program};

use super::kernel::MODULES;
use crate::error::{XtaskError, at};
use crate::workspace::{Workspace, build_static, carry_out_quietly, root};

/// The first program, in the workspace.
const INIT: &str = "tests/lab/guest/init.sh";
/// The folders that busybox and the kernel fill.
const FOLDERS: [&str; 5] = ["bin", "dev", "proc", "sys", "modules"];

/// Packs the file system, if its content has changed since.
pub fn provide(workspace: &Workspace, folder: &Path) -> Result<(), XtaskError> {
    let guest = build_static("ringfence-guest", &workspace.cache("vm/build")?)?;
    let init = root().join(INIT);
    let packed = folder.join(VmImage::INITRD);
    // The modules are written before the kernel.
    let kernel = folder.join(VmImage::KERNEL);
    if is_newer(&packed, &[&guest, &init, &kernel])? {
        return Ok(());
    }
    let tree = lay_out(&guest, &init, folder)?;
    let beside = folder.join("initrd.new");
    pack(&tree, &beside)?;
    std::fs::rename(&beside, &packed).map_err(at(&packed))
}

/// Whether a file exists and is newer than the others.
fn is_newer(file: &Path, than: &[&Path]) -> Result<bool, XtaskError> {
    let changed = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified());
    let Ok(made) = changed(file) else {
        return Ok(false);
    };
    for path in than {
        if changed(path).map_err(at(path))? >= made {
            return Ok(false);
        }
    }
    Ok(true)
}

fn lay_out(guest: &Path, init: &Path, folder: &Path) -> Result<PathBuf, XtaskError> {
    let tree = folder.join("tree");
    // The tree of an earlier build may contain files that are not wanted any more.
    let _ = std::fs::remove_dir_all(&tree);
    for name in FOLDERS {
        let path = tree.join(name);
        std::fs::create_dir_all(&path).map_err(at(&path))?;
    }
    let busybox = find_program("busybox").ok_or(XtaskError::Absent {
        program: "the package busybox-static",
        what: "where busybox is",
    })?;
    put(&busybox, &tree.join("bin/busybox"))?;
    put(guest, &tree.join("bin/guest"))?;
    put(init, &tree.join("init"))?;
    let modules = folder.join(MODULES);
    for module in std::fs::read_dir(&modules).map_err(at(&modules))? {
        let module = module.map_err(at(&modules))?;
        put(&module.path(), &tree.join("modules").join(module.file_name()))?;
    }
    Ok(tree)
}

/// Copies a file, and lets every user execute it.
fn put(from: &Path, to: &Path) -> Result<(), XtaskError> {
    std::fs::copy(from, to).map_err(at(from))?;
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(to, executable).map_err(at(to))
}

fn pack(tree: &Path, to: &Path) -> Result<(), XtaskError> {
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", "find . | cpio --create --format=newc --quiet --owner=0:0"])
        .current_dir(tree)
        .stdout(std::fs::File::create(to).map_err(at(to))?);
    carry_out_quietly(&mut shell, "cpio")
}
