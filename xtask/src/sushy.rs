//! The Redfish emulator, in a Python environment that is kept between runs.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::XtaskError;
use crate::packages::python;
use crate::say::say;
use crate::workspace::Workspace;

const REQUIREMENTS: [&str; 2] = ["sushy-tools==2.2.0", "bcrypt"];

/// Installs the emulator unless it is there already, and says where it is.
pub fn provide(workspace: &Workspace) -> Result<PathBuf, XtaskError> {
    let folder = workspace.cache("python")?;
    let _turn = take_turn(&folder)?;
    let environment = folder.join("venv");
    let emulator = environment.join("bin/sushy-emulator");
    let stamp = folder.join("installed");
    let wanted = REQUIREMENTS.join("\n");
    let is_current = std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted);
    if is_current && emulator.is_file() {
        return Ok(emulator);
    }
    say(&format!(
        "installing {} into {}",
        REQUIREMENTS.join(" "),
        environment.display()
    ));
    run(
        Command::new(python())
            .args(["-m", "venv", "--clear"])
            .arg(&environment),
        "python3 -m venv",
    )?;
    let mut pip = Command::new(environment.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(REQUIREMENTS);
    run(&mut pip, "pip install")?;
    std::fs::write(&stamp, wanted).map_err(|source| XtaskError::File {
        path: stamp.clone(),
        source,
    })?;
    Ok(emulator)
}

/// Waits until no other run is installing. The turn ends with the value.
fn take_turn(folder: &Path) -> Result<File, XtaskError> {
    let path = folder.join("lock");
    let lock = File::create(&path).and_then(|file| file.lock().map(|()| file));
    lock.map_err(|source| XtaskError::File { path, source })
}

fn run(command: &mut Command, program: &str) -> Result<(), XtaskError> {
    let done = command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| XtaskError::Spawn {
            program: program.to_owned(),
            source,
        })?;
    if done.status.success() {
        return Ok(());
    }
    Err(XtaskError::Failed {
        program: program.to_owned(),
        status: done.status.to_string(),
        output: String::from_utf8_lossy(&done.stderr).into_owned(),
    })
}
