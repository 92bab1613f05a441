//! The workspace as cargo sees it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::error::{XtaskError, at, not_started};

const METADATA: &str = "cargo metadata";
const BUILD: &str = "cargo build";

/// The output of `cargo metadata`.
pub struct Workspace {
    pub metadata: Value,
    pub target: PathBuf,
}

impl Workspace {
    /// Runs `cargo metadata`.
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

    /// A folder for files that outlive one run: caches of packages and of Python environments.
    pub fn cache(&self, name: &str) -> Result<PathBuf, XtaskError> {
        let path = self.target.join("lab").join(name);
        std::fs::create_dir_all(&path).map_err(at(&path))?;
        Ok(path)
    }
}

/// The cargo that runs this program, at the root of the workspace.
pub fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(root()).stdin(Stdio::null());
    forget_own_package(&mut command);
    command
}

/// Removes the variables that cargo sets for this program's own package. A build script of a dependency is built anew, with all that
/// depends on it, whenever such a variable differs from that of the last build.
pub fn forget_own_package(command: &mut Command) {
    let of_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(of_package) {
            command.env_remove(name);
        }
    }
}

/// The root of the workspace.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// A program of the workspace.
#[derive(Clone, Copy)]
pub enum Program {
    /// The product.
    Ringfence,
    /// The benchmark.
    Bench,
    /// The campaign.
    Campaign,
}

impl Program {
    fn package_and_name(self) -> (&'static str, &'static str) {
        match self {
            Self::Ringfence => ("ringfence-cli", "ringfence"),
            Self::Bench => ("ringfence-bench", "ringfence-bench"),
            Self::Campaign => ("ringfence-campaign", "ringfence-campaign"),
        }
    }
}

/// How a program is built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// With the profile of the tests.
    ForTests,
    /// With the profile of a release.
    ForShipping,
}

/// Builds programs by one command, so that they share their dependencies, and returns their paths, in the order of `programs`.
pub fn build<const N: usize>(programs: [Program; N], how: Build) -> Result<[PathBuf; N], XtaskError> {
    let mut command = cargo();
    command.args(["build", "--message-format=json-render-diagnostics"]);
    if how == Build::ForTests {
        // With the features that all tests have, so that nothing is built twice.
        command.arg("--workspace");
    }
    for (package, name) in programs.map(Program::package_and_name) {
        if how == Build::ForShipping {
            command.args(["--package", package]);
        }
        command.args(["--bin", name]);
    }
    if how == Build::ForShipping {
        command.args(["--profile", "dist"]);
    }
    let text = capture(&mut command, BUILD)?;
    let text = String::from_utf8_lossy(&text);
    let messages: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let paths: Vec<_> = programs
        .iter()
        .filter_map(|program| executable(&messages, program.package_and_name().1))
        .collect();
    paths.try_into().map_err(|_| XtaskError::Absent {
        program: BUILD,
        what: "where the binary is",
    })
}

/// Runs a cargo command that builds, and returns the paths of the programs that it has built.
pub fn built_programs(command: &mut Command) -> Result<Vec<PathBuf>, XtaskError> {
    let text = capture(command.arg("--message-format=json-render-diagnostics"), BUILD)?;
    let text = String::from_utf8_lossy(&text);
    let messages = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let paths = messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    Ok(paths.collect())
}

/// Builds a small, static program of the workspace; returns its path.
pub fn build_static(package: &str, target: &Path) -> Result<PathBuf, XtaskError> {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    let mut command = cargo();
    command
        .args([
            "build",
            "--quiet",
            "--release",
            "--package",
            package,
            "--target",
            TARGET,
            "--target-dir",
        ])
        .arg(target)
        .env(
            "RUSTFLAGS",
            "-C target-feature=+crt-static -C panic=abort -C opt-level=s -C strip=symbols",
        );
    carry_out(&mut command, BUILD)?;
    Ok(target.join(TARGET).join("release").join(package))
}

fn executable(messages: &[Value], name: &str) -> Option<PathBuf> {
    messages
        .iter()
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

/// Runs a command whose output goes to the terminal.
pub fn carry_out(command: &mut Command, program: &'static str) -> Result<(), XtaskError> {
    capture(command, program).map(|_| ())
}

/// Runs a command whose words are told only if it fails.
pub fn carry_out_quietly(command: &mut Command, program: &str) -> Result<(), XtaskError> {
    let done = command.stdin(Stdio::null()).output();
    let done = done.map_err(not_started(program))?;
    if done.status.success() {
        return Ok(());
    }
    Err(XtaskError::Failed {
        program: program.to_owned(),
        status: done.status.to_string(),
        output: String::from_utf8_lossy(&done.stderr).into_owned(),
    })
}

/// The stdout of a command; its stderr goes to the terminal.
fn capture(command: &mut Command, program: &'static str) -> Result<Vec<u8>, XtaskError> {
    let done = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(not_started(program))?;
    if done.status.success() {
        return Ok(done.stdout);
    }
    Err(XtaskError::Failed {
        program: program.to_owned(),
        status: done.status.to_string(),
        output: String::new(),
    })
}
