//! `cargo xtask test`: every test, with real peers.

use std::process::{Command, ExitCode, Stdio};

use crate::error::XtaskError;
use crate::peers::{OpenStackUse, Parts, Peers};
use crate::say::say;
use crate::supervise::{Supervisor, exit_code};
use crate::without::Without;
use crate::workspace::{Build, Program, Workspace, build, cargo, carry_out};

/// The path of the `ringfence` binary, for the tests that run it.
pub const BINARY: &str = "RINGFENCE_TEST_BINARY";

/// What to test.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub without: Without,
    /// Arguments for cargo nextest, or for cargo test where nextest is not installed; none runs everything
    #[arg(last = true)]
    runner: Vec<String>,
}

/// Runs the tests and answers with their exit code.
pub fn run(arguments: &Arguments) -> Result<ExitCode, XtaskError> {
    let workspace = Workspace::find()?;
    let mut supervisor = Supervisor::new()?;
    let with_openstack = arguments.without.has_openstack();
    let openstack = if with_openstack {
        OpenStackUse::Running
    } else {
        OpenStackUse::None
    };
    let has_nextest = has_nextest();
    // Installing waits for disks and networks, building for the processor. What is started then has it for itself.
    let (parts, built) = std::thread::scope(|scope| {
        let parts = scope.spawn(|| Parts::provide(&workspace, openstack));
        let built = build([Program::Ringfence], Build::ForTests)
            .and_then(|binary| build_tests(has_nextest, &arguments.runner).map(|()| binary));
        let parts = parts.join();
        (
            parts.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            built,
        )
    });
    let [binary] = built?;
    let peers = Peers::start(parts?)?;
    let mut run = |mut command: Command| {
        command
            .envs(peers.environment())
            .env(BINARY, &binary)
            .stdin(Stdio::null());
        supervisor.run(command, false)
    };
    let mut documentation = None;
    if has_nextest && arguments.runner.is_empty() {
        // nextest leaves these out.
        documentation = Some(run(quiet_doc_tests())?);
    }
    arguments.without.say();
    let tests = run(main_run(has_nextest, with_openstack, &arguments.runner))?;
    arguments.without.say();
    match documentation {
        Some(failed) if tests.success() && !failed.success() => {
            say("the tests in the documentation failed; they are at the beginning");
            Ok(exit_code(failed))
        }
        Some(_) | None => Ok(exit_code(tests)),
    }
}

fn has_nextest() -> bool {
    cargo()
        .args(["nextest", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Everything, or the packages that are named.
fn build_tests(has_nextest: bool, arguments: &[String]) -> Result<(), XtaskError> {
    let mut command = cargo();
    if has_nextest {
        command.args(["nextest", "run"]);
    } else {
        command.arg("test");
    }
    command.arg("--no-run");
    let packages = packages(arguments);
    if packages.is_empty() {
        command.arg("--workspace");
    }
    command.args(packages);
    carry_out(&mut command, "cargo test --no-run")
}

fn quiet_doc_tests() -> Command {
    let mut command = cargo();
    command.args(["test", "--doc", "--workspace", "--no-fail-fast", "--quiet"]);
    command
}

/// `cargo test` has no profiles; what it is to leave out it is told behind all else.
fn main_run(has_nextest: bool, with_openstack: bool, arguments: &[String]) -> Command {
    let mut command = cargo();
    if has_nextest {
        command.args(["nextest", "run"]);
    } else {
        command.arg("test");
    }
    if !names_packages(arguments) {
        command.arg("--workspace");
    }
    command.arg("--no-fail-fast");
    if has_nextest && !with_openstack {
        command.args(["--profile", "without-openstack"]);
    }
    command.args(arguments);
    if !has_nextest && !with_openstack {
        if !arguments.iter().any(|argument| argument == "--") {
            command.arg("--");
        }
        command.args(["--skip", "openstack::"]);
    }
    command
}

/// Cargo ignores `--package` beside `--workspace`.
fn names_packages(arguments: &[String]) -> bool {
    !packages(arguments).is_empty()
}

/// The arguments that name packages.
fn packages(arguments: &[String]) -> Vec<&str> {
    let mut own = arguments.iter().take_while(|argument| *argument != "--");
    let mut found = Vec::new();
    while let Some(argument) = own.next() {
        if argument == "-p" || argument == "--package" {
            found.push(argument.as_str());
            found.extend(own.next().map(String::as_str));
        } else if argument.starts_with("-p") || argument.starts_with("--package") {
            found.push(argument.as_str());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(has_nextest: bool, arguments: &[&str]) -> String {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        words_of(&main_run(has_nextest, true, &arguments))
    }

    fn words_of(command: &Command) -> String {
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    #[test]
    fn without_arguments_everything_runs() {
        assert_eq!(line(true, &[]), "nextest run --workspace --no-fail-fast");
        assert_eq!(line(false, &[]), "test --workspace --no-fail-fast");
    }

    #[test]
    fn openstack_is_left_out_by_a_profile_or_by_name() {
        let words = ["gapless".to_owned()];
        assert_eq!(
            words_of(&main_run(true, false, &words)),
            "nextest run --workspace --no-fail-fast --profile without-openstack gapless"
        );
        assert_eq!(
            words_of(&main_run(false, false, &words)),
            "test --workspace --no-fail-fast gapless -- --skip openstack::"
        );
    }

    #[test]
    fn a_package_narrows_the_run() {
        assert_eq!(
            line(true, &["-p", "ringfence-db", "gapless"]),
            "nextest run --no-fail-fast -p ringfence-db gapless"
        );
        assert_eq!(
            line(false, &["gapless", "--", "-p"]),
            "test --workspace --no-fail-fast gapless -- -p"
        );
    }
}
