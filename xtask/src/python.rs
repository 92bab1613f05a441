//! Python environments that are kept between runs.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::XtaskError;
use crate::packages::python;
use crate::say::say;
use crate::workspace::Workspace;

/// The content of an environment.
pub struct Environment<'a> {
    /// The environment's folder in the cache.
    pub folder: &'static str,
    /// The name of the content in messages.
    pub what: &'static str,
    /// The requirements to install.
    pub requirements: &'a [&'a str],
    /// The program to find.
    pub program: &'static str,
}

/// Makes the environment unless one with equal requirements exists, and returns the path of its program.
pub fn provide_in(workspace: &Workspace, wanted: &Environment<'_>) -> Result<PathBuf, XtaskError> {
    let folder = workspace.cache(wanted.folder)?;
    let _turn = take_turn(&folder)?;
    let environment = folder.join("venv");
    let program = environment.join("bin").join(wanted.program);
    let stamp = folder.join("installed");
    // An environment works only under the path where it was made.
    let made = format!("{}\n{}", environment.display(), wanted.requirements.join("\n"));
    let is_current = std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == made);
    if is_current && program.is_file() {
        return Ok(program);
    }
    say(&format!(
        "installing {} into {}",
        wanted.what,
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
        .args(wanted.requirements);
    run(&mut pip, "pip install")?;
    std::fs::write(&stamp, made).map_err(|source| XtaskError::File {
        path: stamp.clone(),
        source,
    })?;
    Ok(program)
}

/// Waits until no other run is installing. The turn ends when the value is dropped.
pub fn take_turn(folder: &Path) -> Result<File, XtaskError> {
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
