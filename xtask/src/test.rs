//! `cargo xtask test`: runs every test, with real peers.

use std::process::{Command, ExitCode, Stdio};

use crate::error::XtaskError;
use crate::peers::{OpenStackUse, Parts, Peers, Wanted};
use crate::say::say;
use crate::supervise::{Supervisor, exit_code};
use crate::without::{LeftOut, Without};
use crate::workspace::{Build, Program, Workspace, build, cargo, carry_out};

/// The path of the `ringfence` binary, for the tests that run it.
pub const BINARY: &str = "RINGFENCE_TEST_BINARY";

/// As many as tests of OpenStack run at one time, which `.config/nextest.toml` says.
const CLOUDS: usize = 2;

/// The arguments of the tests.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub without: Without,
    /// Arguments for cargo nextest, or for cargo test where nextest is not installed; none runs everything
    #[arg(last = true)]
    runner: Vec<String>,
}

/// Runs the tests and returns their exit code.
pub fn run(arguments: &Arguments) -> Result<ExitCode, XtaskError> {
    let workspace = Workspace::find()?;
    let mut supervisor = Supervisor::new()?;
    let wanted = Wanted {
        openstack: if arguments.without.has_openstack() {
            OpenStackUse::Running(CLOUDS)
        } else {
            OpenStackUse::None
        },
        vm: arguments.without.has_vm(),
        kubernetes: arguments.without.has_kubernetes(),
        ceph: arguments.without.has_ceph(),
        page: arguments.without.has_page(),
    };
    let has_nextest = has_nextest();
    // Installing waits for disks and networks, building for the processor, so both run at once. The peers start after both.
    let (parts, built) = std::thread::scope(|scope| {
        let parts = scope.spawn(|| Parts::provide(&workspace, wanted));
        let built = build([Program::Ringfence], Build::ForTests)
            .and_then(|binary| build_tests(has_nextest, &arguments.runner).map(|()| binary));
        let parts = parts.join();
        (
            parts.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            built,
        )
    });
    let [binary] = built?;
    let parts = parts?;
    let mut left_out = LeftOut::asked(&arguments.without);
    if let Some(why) = parts.no_vm() {
        left_out.vm = Some(format!("because {why}"));
    }
    if let Some(why) = parts.no_kubernetes() {
        left_out.kubernetes = Some(format!("because {why}"));
    }
    if let Some(why) = parts.no_ceph() {
        left_out.ceph = Some(format!("because {why}"));
    }
    let peers = Peers::start(parts)?;
    let mut run = |mut command: Command| {
        command
            .envs(peers.environment())
            .env(BINARY, &binary)
            .stdin(Stdio::null());
        supervisor.run(command, false)
    };
    let mut documentation = None;
    if has_nextest && arguments.runner.is_empty() {
        // nextest does not run the tests in the documentation.
        documentation = Some(run(quiet_doc_tests())?);
    }
    left_out.say();
    let tests = run(main_run(has_nextest, &left_out, &arguments.runner))?;
    left_out.say();
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

/// Builds all tests, or those of the packages that are named.
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

/// `cargo test` has no filters; the modules to leave out are arguments at its end.
fn main_run(has_nextest: bool, left_out: &LeftOut, arguments: &[String]) -> Command {
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
    if has_nextest && let Some(filter) = filter(left_out, arguments) {
        command.args(["--filterset", &filter]);
    }
    command.args(arguments);
    let mut skipped = left_out.modules().filter(|_| !has_nextest).peekable();
    if skipped.peek().is_some() && !arguments.iter().any(|argument| argument == "--") {
        command.arg("--");
    }
    for module in skipped {
        command.args(["--skip", module]);
    }
    command
}

/// The filter of nextest that leaves tests out. nextest runs what any of several filters lets through, so that a caller's own filter stays
/// alone.
fn filter(left_out: &LeftOut, arguments: &[String]) -> Option<String> {
    let is_own = |argument: &String| argument.starts_with("-E") || argument.starts_with("--filter");
    let modules: Vec<_> = left_out.modules().collect();
    let is_needed = !modules.is_empty() && !arguments.iter().any(is_own);
    is_needed.then(|| format!("not test(/{}/)", modules.join("|")))
}

/// Whether the arguments name packages: Cargo ignores `--package` beside `--workspace`.
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
        words_of(&main_run(has_nextest, &LeftOut::default(), &arguments))
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
    fn costly_peers_are_left_out_by_a_filter_or_by_name() {
        let words = ["gapless".to_owned()];
        let mut left_out = LeftOut {
            openstack: Some("a reason".to_owned()),
            ..LeftOut::default()
        };
        assert_eq!(
            words_of(&main_run(true, &left_out, &words)),
            "nextest run --workspace --no-fail-fast --filterset not test(/openstack::/) gapless"
        );
        assert_eq!(
            words_of(&main_run(false, &left_out, &words)),
            "test --workspace --no-fail-fast gapless -- --skip openstack::"
        );
        left_out.vm = Some("another".to_owned());
        left_out.kubernetes = Some("a third".to_owned());
        assert_eq!(
            words_of(&main_run(true, &left_out, &words)),
            "nextest run --workspace --no-fail-fast --filterset not test(/openstack::|real_hosts::|kubernetes::/) gapless"
        );
        assert_eq!(
            words_of(&main_run(false, &left_out, &words)),
            "test --workspace --no-fail-fast gapless -- --skip openstack:: --skip real_hosts:: --skip kubernetes::"
        );
    }

    #[test]
    fn a_filter_of_the_caller_stays_alone() {
        let left_out = LeftOut {
            vm: Some("a reason".to_owned()),
            ..LeftOut::default()
        };
        let words = ["-E".to_owned(), "test(gapless)".to_owned()];
        assert_eq!(
            words_of(&main_run(true, &left_out, &words)),
            "nextest run --workspace --no-fail-fast -E test(gapless)"
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
