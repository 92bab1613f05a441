//! `cargo xtask mutants`: every guard of the rules is switched off once, and a test or a search has to notice.
//!
//! All programs come from one build in which guards can be switched off at run time. For each guard the scenarios of the rules and the tests of
//! the world run first, then the properties, then the model check, then the random search: from the fastest to the slowest.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::error::{XtaskError, not_started};
use crate::say::say;
use crate::workspace::{Workspace, built_programs, cargo};

/// The variable that names the guard to switch off.
const VARIABLE: &str = "RINGFENCE_TEST_WITHOUT_GUARD";
/// Packages whose tests are run with guards switched off.
const PACKAGES: [&str; 2] = ["ringfence-core", "ringfence-world"];
/// Which of their tests run, one after the other.
const PASSES: [&[&str]; 2] = [
    &["--skip", "search::", "--skip", "properties::"],
    &["properties::"],
];
/// The features of the build in which guards can be switched off.
const FEATURES: &str = "ringfence-core/mutants,ringfence-world/mutants";

/// Guards whose absence changes nothing, since another guard (named here) covers them.
const EQUIVALENT: &[(&str, &str)] = &[
    (
        "SilenceOfUnreachable",
        "where every source that has heard the host reports its silence, no sign of life is newer than that of the source that heard it \
         last, and the host is UNREACHABLE (EveryWitnessIsSilent, LifeBreaksSilence)",
    ),
    (
        "ClaimOfTaskInUse",
        "an attempt that its task goes on without has ended or is cancelled (EndedIsNotClaimed)",
    ),
];

/// The exit code of the search where a history goes wrong with every guard on.
const WRONG_IN_ANY_CASE: i32 = 3;

/// The guard, and how long to search.
#[derive(clap::Args)]
pub struct Arguments {
    /// One guard; all of them if absent
    #[arg(long)]
    guard: Option<String>,
    /// Random histories for a guard that the tests have not noticed
    #[arg(long, default_value_t = 300_000)]
    histories: u64,
    /// Seconds for each small world of the model check, for a guard that the tests have not noticed
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

/// The programs that notice the absence of a guard.
struct Notice {
    tests: Vec<PathBuf>,
    model_check: PathBuf,
    seconds: u64,
    search: PathBuf,
    histories: u64,
}

/// Switches the guards off, one after the other. Fails if the absence of one is not noticed.
pub fn run(arguments: &Arguments) -> Result<ExitCode, XtaskError> {
    let target = Workspace::find()?.target.join("mutants");
    let notice = Notice::build(&target, arguments)?;
    if let Some(name) = notice.failing_test("")? {
        say(&format!(
            "mutants: the tests ({name}) fail with every guard on; mend them first"
        ));
        return Ok(ExitCode::FAILURE);
    }
    let mut missed = Vec::new();
    for guard in notice.guards()? {
        if arguments.guard.as_ref().is_some_and(|wanted| *wanted != guard) {
            continue;
        }
        let by = notice.by(&guard)?;
        let reason = EQUIVALENT
            .iter()
            .find(|(name, _)| *name == guard)
            .map(|(_, why)| *why);
        match (&by, reason) {
            (Some(by), _) => say(&format!("{guard:<28} noticed by {by}")),
            (None, Some(why)) => say(&format!("{guard:<28} equivalent: {why}")),
            (None, None) => {
                say(&format!("{guard:<28} NOT NOTICED"));
                missed.push(guard);
            }
        }
    }
    if missed.is_empty() {
        say("mutants: the absence of every guard is noticed");
        return Ok(ExitCode::SUCCESS);
    }
    say(&format!("mutants: not noticed: {}", missed.join(", ")));
    Ok(ExitCode::FAILURE)
}

impl Notice {
    fn build(target: &Path, arguments: &Arguments) -> Result<Self, XtaskError> {
        let mut tests = cargo();
        tests.args(["test", "--no-run", "--test", "suite", "--features", FEATURES]);
        for package in PACKAGES {
            tests.args(["--package", package]);
        }
        // The tests run once for each guard.
        tests.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        let mut tests = built_programs(tests.arg("--target-dir").arg(target))?;
        // Cargo also lists the other programs of the packages, and a program that does not know a test's arguments would fail for every
        // guard.
        tests.retain(|program| program.parent().is_some_and(|folder| folder.ends_with("deps")));
        Ok(Self {
            tests,
            model_check: program(target, "ringfence-modelcheck", "modelcheck")?,
            seconds: arguments.seconds,
            search: program(target, "ringfence-world", "search")?,
            histories: arguments.histories,
        })
    }

    /// The names of all guards.
    fn guards(&self) -> Result<Vec<String>, XtaskError> {
        let output = Command::new(&self.search)
            .arg("--guards")
            .stdin(Stdio::null())
            .output();
        let output = output.map_err(not_started(&self.search.display().to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// The test program that fails without this guard; with an empty name, with every guard on.
    fn failing_test(&self, guard: &str) -> Result<Option<String>, XtaskError> {
        for (pass, test) in PASSES
            .iter()
            .flat_map(|pass| self.tests.iter().map(move |test| (pass, test)))
        {
            // Without some guards a history has no end, and would take all memory.
            let mut command = Command::new("/bin/sh");
            command.args(["-c", "ulimit -v 4194304; exec \"$0\" \"$@\""]);
            command.arg(test).args(*pass).env("PROPTEST_CASES", "64");
            // A failure without a guard must not be saved as a regression: from this directory no property test finds its file of
            // regressions.
            command.current_dir("/");
            if fails(command, guard)? {
                let name = test.file_name().unwrap_or_default();
                return Ok(Some(name.to_string_lossy().into_owned()));
            }
        }
        Ok(None)
    }

    /// The test or search that has noticed that a guard is off.
    fn by(&self, guard: &str) -> Result<Option<String>, XtaskError> {
        if let Some(name) = self.failing_test(guard)? {
            return Ok(Some(format!("the tests ({name})")));
        }
        // Both programs exit with success once they have noticed.
        let mut model_check = Command::new(&self.model_check);
        model_check.args(["--seconds", &self.seconds.to_string(), "--without", guard]);
        if !fails(model_check, guard)? {
            return Ok(Some("the model check".to_owned()));
        }
        self.searched(guard)
    }

    /// What the search has noticed, with the seed that repeats its history.
    fn searched(&self, guard: &str) -> Result<Option<String>, XtaskError> {
        let mut search = Command::new(&self.search);
        search.args(["--histories", &self.histories.to_string(), "--without", guard]);
        let output = search.stdin(Stdio::null()).output();
        let output = output.map_err(not_started(&self.search.display().to_string()))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let first = said.lines().next().unwrap_or_default();
        let by = first.trim_start_matches(guard).trim_start();
        if output.status.success() {
            return Ok(Some(format!("the search: {by}")));
        }
        // The search has found a history that goes wrong with every guard on, which matters more than any guard.
        if output.status.code() == Some(WRONG_IN_ANY_CASE) {
            return Err(XtaskError::Failed {
                program: self.search.display().to_string(),
                status: output.status.to_string(),
                output: said.into_owned(),
            });
        }
        Ok(None)
    }
}

/// A program of this package in which guards can be switched off.
fn program(target: &Path, package: &str, name: &str) -> Result<PathBuf, XtaskError> {
    let mut build = cargo();
    build.args(["build", "--release", "--package", package, "--bin", name]);
    build.args(["--features", &format!("{package}/mutants")]);
    let built = built_programs(build.arg("--target-dir").arg(target))?;
    built.into_iter().next().ok_or(XtaskError::Absent {
        program: "cargo build",
        what: "where the program is",
    })
}

fn fails(mut command: Command, guard: &str) -> Result<bool, XtaskError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command
        .env(VARIABLE, guard)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let status = status.map_err(not_started(&program))?;
    Ok(!status.success())
}
