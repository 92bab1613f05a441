//! The files from which virtual hosts start, made once and kept between runs: Debian's kernel, and a first file system with very little in
//! it.

mod kernel;
mod qemu;
mod userland;

use std::path::PathBuf;

use crate::error::{XtaskError, in_short};
use crate::packages;
use crate::python::take_turn;
use crate::say::say;
use crate::workspace::Workspace;

/// Whether there can be virtual hosts.
pub enum Vm {
    /// The folder for `ringfence_lab::VmImage`.
    There(PathBuf),
    /// Why there are none.
    Absent(String),
}

/// Makes missing files. Without QEMU there are no virtual hosts, which is no error.
pub fn provide(workspace: &Workspace) -> Result<Vm, XtaskError> {
    if !cfg!(target_arch = "x86_64") {
        return Ok(Vm::Absent(
            "they are of another architecture than this machine".to_owned(),
        ));
    }
    let folder = workspace.cache("vm")?;
    let _turn = take_turn(&folder)?;
    if let Err(error) = packages::provide_vm(workspace).and_then(|()| qemu::provide(&folder)) {
        return Ok(Vm::Absent(in_short(&error)));
    }
    if !kernel::is_complete(&folder) {
        say(&format!("taking Debian's kernel into {}", folder.display()));
        let package = match kernel::fetch(&folder) {
            Ok(package) => package,
            Err(error) => return Ok(Vm::Absent(in_short(&error))),
        };
        kernel::take_out(&package, &folder)?;
    }
    userland::provide(workspace, &folder)?;
    Ok(Vm::There(folder))
}
