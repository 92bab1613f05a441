//! `cargo-deb`, which makes the Debian package, built once and kept between runs.

use std::path::PathBuf;

use crate::error::{XtaskError, at};
use crate::python::take_turn;
use crate::say::say;
use crate::workspace::{Workspace, cargo, carry_out};

const VERSION: &str = "3.8.0";

/// Installs `cargo-deb` unless it is installed, and returns its path.
pub fn provide(workspace: &Workspace) -> Result<PathBuf, XtaskError> {
    let folder = workspace.cache("cargo-deb")?;
    let _turn = take_turn(&folder)?;
    let installed = folder.join(VERSION);
    let program = installed.join("bin").join("cargo-deb");
    if program.is_file() {
        return Ok(program);
    }
    say(&format!("installing cargo-deb into {}", installed.display()));
    let target = folder.join("build");
    let mut command = cargo();
    command
        // It packs one file: building it takes longer than its work.
        .args([
            "install",
            "--quiet",
            "--locked",
            "--debug",
            "--version",
            VERSION,
            "--root",
        ])
        .arg(&installed)
        .arg("--target-dir")
        .arg(&target)
        .arg("cargo-deb");
    carry_out(&mut command, "cargo install cargo-deb")?;
    // Removes hundreds of megabytes that are not needed any more.
    std::fs::remove_dir_all(&target).map_err(at(&target))?;
    Ok(program)
}
