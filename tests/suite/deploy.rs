//! The files in `deploy/`: no service runs from them here, but everything that needs no peers is checked.

mod chart;
mod compose;
mod gates;
mod package;
mod rights;
mod units;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ringfence_tests::{Machine, Run};
use serde_json::Value;

/// A path in the source tree.
pub(crate) fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(path)
}

/// A program in the folder with Python and Go that the test run provides.
pub(crate) fn tool(name: &str) -> PathBuf {
    let Some(path) = std::env::var_os("RINGFENCE_TEST_DEPLOY_TOOLS") else {
        panic!("RINGFENCE_TEST_DEPLOY_TOOLS is not set; run the tests with `cargo xtask test`");
    };
    Path::new(&path).parent().unwrap().join(name)
}

#[track_caller]
pub(crate) fn text(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?} ended with {status}:\n{out}{err}");
    out.into_owned()
}

/// A YAML document as JSON.
fn yaml(path: &Path) -> Value {
    let script = "import datetime, json, sys, yaml; json.dump(yaml.safe_load(open(sys.argv[1])), sys.stdout)";
    let json = text(Command::new(tool("python")).args(["-c", script]).arg(path));
    serde_json::from_str(&json).unwrap()
}

/// Runs `deploy/compose/init` in a folder of this machine, and returns the folder of the secrets.
fn secrets(machine: &Machine) -> PathBuf {
    let folder = machine.file("secrets");
    text(
        Command::new(source("deploy/compose/init"))
            .arg(&folder)
            .env("RF_COMPOSE_ENV", machine.file("compose.env")),
    );
    folder
}

#[track_caller]
fn accepted(run: &Run) {
    assert_eq!(run.code, Some(0), "{run:?}");
}

/// Runs `config check` with a file and a service's variables.
async fn check(file: &Path, variables: &[(String, String)]) {
    let mut machine = Machine::new();
    for (name, value) in variables
        .iter()
        .filter(|(name, _)| name.starts_with("RINGFENCE_"))
    {
        machine = machine.set(name, value);
    }
    let machine = machine.set("RINGFENCE_CONFIG", file.display().to_string());
    accepted(&machine.run(&["config", "check"]).await);
}

/// The names and values of an object.
fn pairs(object: &Value) -> Vec<(String, String)> {
    let object = object.as_object().into_iter().flatten();
    object
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect()
}
