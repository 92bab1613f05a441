//! The errors of a developer's command.

use std::io;
use std::path::{Path, PathBuf};

use ringfence_lab::LabError;

/// Why a command could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum XtaskError {
    /// A program could not be started.
    #[error("cannot run {program}")]
    Spawn {
        /// The program.
        program: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A program failed.
    #[error("{program} failed ({status}):\n{output}")]
    Failed {
        /// The program.
        program: String,
        /// The program's exit status.
        status: String,
        /// The end of what it printed.
        output: String,
    },
    /// `cargo` printed something other than what it documents.
    #[error("cannot read what {program} printed")]
    Json {
        /// The program with its arguments.
        program: &'static str,
        /// The error in its output.
        #[source]
        source: serde_json::Error,
    },
    /// `cargo` did not print something that is needed.
    #[error("{program} did not say {what}")]
    Absent {
        /// The program with its arguments.
        program: &'static str,
        /// What is missing.
        what: &'static str,
    },
    /// A file or folder could not be read or written.
    #[error("cannot use {path}", path = path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A path cannot be told to the tests.
    #[error("a path of a test's peer has a colon; TMPDIR must have none")]
    Paths(#[from] std::env::JoinPathsError),
    /// Packages are missing and this process may not install them.
    #[error(
        "missing Debian packages: {packages}; install them as root with\n  apt-get install --no-install-recommends {packages}"
    )]
    Packages {
        /// The packages' names, separated by blanks.
        packages: String,
    },
    /// Signals cannot be listened to.
    #[error("cannot listen to signals")]
    Signals(#[source] io::Error),
    /// A peer did not start.
    #[error(transparent)]
    Lab(#[from] LabError),
}

/// An error with all of its causes.
pub fn in_full(error: &XtaskError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// An error on one line: only the end of a program's output, which says why it failed.
pub fn in_short(error: &XtaskError) -> String {
    let text = in_full(error);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    match lines.next_back() {
        Some(last) => format!("{first} {last}"),
        None => first.to_owned(),
    }
}

/// A program that could not be started.
pub fn not_started(program: &str) -> impl FnOnce(io::Error) -> XtaskError + use<> {
    let program = program.to_owned();
    move |source| XtaskError::Spawn { program, source }
}

/// An error with a file.
pub fn at(path: &Path) -> impl FnOnce(io::Error) -> XtaskError + use<> {
    let path = path.to_owned();
    move |source| XtaskError::File { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_error_the_beginning_and_the_end_are_told() {
        let apt = |output: &str| {
            in_short(&XtaskError::Failed {
                program: "apt-get install".to_owned(),
                status: "exit status: 100".to_owned(),
                output: output.to_owned(),
            })
        };
        let told = apt(
            "Reading package lists...\nBuilding...\nE: Packages need to be removed but remove is disabled.\n",
        );
        assert_eq!(
            told,
            "apt-get install failed (exit status: 100): E: Packages need to be removed but remove is disabled."
        );
        assert_eq!(apt(""), "apt-get install failed (exit status: 100):");
    }
}
