//! What is in `deploy/`: no service runs under it here, but whatever can be checked without its peers is.

mod chart;
mod compose;
mod package;
mod rights;
mod units;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ringfence_tests::{Machine, Run};
use serde_json::Value;

/// A path from the top of the sources.
fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(path)
}

/// A program in the folder of Python and Go that the test run has provided.
fn tool(name: &str) -> PathBuf {
    let Some(path) = std::env::var_os("RINGFENCE_TEST_DEPLOY_TOOLS") else {
        panic!("RINGFENCE_TEST_DEPLOY_TOOLS is not set; run the tests with `cargo xtask test`");
    };
    Path::new(&path).parent().unwrap().join(name)
}

#[track_caller]
fn text(command: &mut Command) -> String {
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

/// What `deploy/compose/init` makes, in a folder of its own.
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

/// Runs `config check` with a file and variables as a service would have them.
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

/// Names and values of an object.
fn pairs(object: &Value) -> Vec<(String, String)> {
    let object = object.as_object().into_iter().flatten();
    object
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect()
}
