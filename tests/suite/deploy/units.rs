//! The units of systemd, and the example configurations of the package.

use std::process::Command;

use ringfence_lab::find_program;
use ringfence_tests::{Machine, tell};

use super::{check, source, text};

const UNITS: &[&str] = &[
    "ringfence-api.service",
    "ringfence-engine.service",
    "ringfence-scheduler-hook.service",
    "ringfence-worker@.service",
    "ringfence-standalone.service",
];

/// The highest exposure that `systemd-analyze security` may give a unit, in tenths: from 0 for no exposure to 100 for full exposure.
const MOST_EXPOSED: &str = "15";

/// The units with a program that exists on this machine.
fn on_this_machine(machine: &Machine) -> Vec<std::path::PathBuf> {
    let copy = |name: &&str| {
        let unit = std::fs::read_to_string(source("deploy/systemd").join(name)).unwrap();
        assert!(unit.contains("\nExecStart=/usr/bin/ringfence "), "{name}");
        let path = machine.file(name);
        std::fs::write(&path, unit.replace("/usr/bin/ringfence ", "/bin/true ")).unwrap();
        path
    };
    UNITS.iter().map(copy).collect()
}

fn has_systemd_analyze() -> bool {
    let is_there = find_program("systemd-analyze").is_some();
    if !is_there {
        tell("SKIPPED: systemd-analyze is not installed (package systemd); units are not checked");
    }
    is_there
}

#[test]
fn systemd_understands_every_line_of_the_units() {
    if !has_systemd_analyze() {
        return;
    }
    let machine = Machine::new();
    let units = on_this_machine(&machine);
    let said = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .args(&units)
        .output()
        .unwrap();
    let said = (said.status, String::from_utf8_lossy(&said.stderr).into_owned());
    let ours = said.1.lines().filter(|line| line.contains("ringfence"));
    assert!(said.0.success() && ours.count() == 0, "{said:?}");
}

#[test]
fn units_have_little_access_to_the_machine() {
    if !has_systemd_analyze() {
        return;
    }
    let machine = Machine::new();
    for unit in on_this_machine(&machine) {
        text(
            Command::new("systemd-analyze")
                .args(["security", "--offline=true"])
                .arg(format!("--threshold={MOST_EXPOSED}"))
                .arg(unit),
        );
    }
}

#[tokio::test]
async fn the_examples_of_the_package_are_accepted() {
    for name in ["ringfence", "worker", "standalone"] {
        check(&source(&format!("deploy/debian/{name}.toml.example")), &[]).await;
    }
}
