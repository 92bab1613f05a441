//! The workspace as cargo sees it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::error::XtaskError;

const METADATA: &str = "cargo metadata";
const BUILD: &str = "cargo build";

/// What `cargo metadata` says.
pub struct Workspace {
    pub metadata: Value,
    pub target: PathBuf,
}

impl Workspace {
    /// Asks cargo.
    pub fn find() -> Result<Self, XtaskError> {
        let text = capture(
            cargo().args(["metadata", "--format-version", "1", "--no-deps"]),
            METADATA,
        )?;
        let metadata: Value = serde_json::from_slice(&text).map_err(|source| XtaskError::Json {
            program: METADATA,
            source,
        })?;
        let target = metadata["target_directory"].as_str().ok_or(XtaskError::Absent {
            program: METADATA,
            what: "where the target folder is",
        })?;
        let target = PathBuf::from(target);
        Ok(Self { metadata, target })
    }

    /// A folder for what outlives one run: caches of packages and of Python environments.
    pub fn cache(&self, name: &str) -> Result<PathBuf, XtaskError> {
        let path = self.target.join("lab").join(name);
        std::fs::create_dir_all(&path).map_err(|source| XtaskError::File {
            path: path.clone(),
            source,
        })?;
        Ok(path)
    }
}

/// The cargo that runs us, at the root of the workspace.
pub fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// Where the workspace is.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Builds the `ringfence` binary and says where it is.
pub fn build_ringfence() -> Result<PathBuf, XtaskError> {
    let mut build = cargo();
    build
        .args(["build", "--package", "ringfence-cli", "--bin", "ringfence"])
        .arg("--message-format=json-render-diagnostics");
    let text = capture(&mut build, BUILD)?;
    let text = String::from_utf8_lossy(&text);
    let is_ours = |message: &Value| message["target"]["name"] == "ringfence";
    text.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(is_ours)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .ok_or(XtaskError::Absent {
            program: BUILD,
            what: "where the binary is",
        })
}

/// What a command prints on stdout; stderr goes to the terminal.
fn capture(command: &mut Command, program: &'static str) -> Result<Vec<u8>, XtaskError> {
    let done = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|source| XtaskError::Spawn {
            program: program.to_owned(),
            source,
        })?;
    if done.status.success() {
        return Ok(done.stdout);
    }
    Err(XtaskError::Failed {
        program: program.to_owned(),
        status: done.status.to_string(),
        output: String::new(),
    })
}
