//! Runs the binary.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::service::Service;

/// A machine: an empty home and an empty environment.
pub struct Machine {
    home: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

/// The result of a run.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Run {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

impl Machine {
    pub fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            variables: Vec::new(),
        }
    }

    /// A machine with the service's address and a token.
    pub fn with(service: &Service) -> Self {
        Self::new()
            .set("RINGFENCE_URL", &service.url)
            .set("RINGFENCE_TOKEN", "rf_test")
    }

    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Runs `ringfence` with these arguments, and without a terminal.
    pub fn run(&self, words: &[&str]) -> Run {
        let output = self.command(words).stdin(Stdio::null()).output().unwrap();
        let Output {
            status,
            stdout,
            stderr,
        } = output;
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Run {
            code: status.code().unwrap_or(-1),
            out: text(stdout),
            err: text(stderr),
        }
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ringfence"));
        command
            .args(words)
            .env_clear()
            .env("HOME", self.home.path())
            .envs(self.variables.iter().cloned());
        command
    }
}
