//! Errors of peers.

use std::io;
use std::path::PathBuf;

/// Why a peer could not be started, stopped or called.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A program of the peer is not installed.
    #[error("{program} was not found; Debian has it in the package {package}")]
    Missing {
        /// The program.
        program: &'static str,
        /// Debian's package with the program.
        package: &'static str,
    },
    /// A call of the operating system failed.
    #[error("{what}")]
    Os {
        /// What was being done, as in "reading FILE".
        what: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A program that prepares the peer failed.
    #[error("{program} failed: {output}")]
    Failed {
        /// The program.
        program: String,
        /// The end of what it printed.
        output: String,
    },
    /// The peer did not become ready in time, or ended at once.
    #[error("{peer} did not become ready within {seconds} s; the end of {log}:\n{tail}", log = log.display())]
    NotReady {
        /// The peer's name.
        peer: &'static str,
        /// The time limit.
        seconds: u64,
        /// The peer's log file.
        log: PathBuf,
        /// The end of that log.
        tail: String,
    },
    /// A service could not be reached.
    #[error("{what}")]
    Unreachable {
        /// The request.
        what: String,
        /// The error of the connection.
        #[source]
        source: Box<ureq::Error>,
    },
    /// A service answered with another status than a success.
    #[error("{what}: {status} {body}")]
    Refused {
        /// The request.
        what: String,
        /// The HTTP status.
        status: u16,
        /// The end of the answer.
        body: String,
    },
    /// An awaited state was not reached in time.
    #[error("{what} did not happen within {seconds} s; seen last: {seen}")]
    NotSeen {
        /// The awaited state.
        what: String,
        /// The time limit.
        seconds: u64,
        /// The state that was seen last.
        seen: String,
    },
    /// A text is not the expected JSON.
    #[error("cannot read {what}")]
    Json {
        /// The file or the answer.
        what: String,
        /// The parser's error.
        #[source]
        source: serde_json::Error,
    },
}

/// Adds what was being done to an error of the operating system.
pub(crate) trait During<T> {
    fn during(self, what: impl FnOnce() -> String) -> Result<T, LabError>;
}

impl<T, E: Into<io::Error>> During<T> for Result<T, E> {
    fn during(self, what: impl FnOnce() -> String) -> Result<T, LabError> {
        self.map_err(|source| LabError::Os {
            what: what(),
            source: source.into(),
        })
    }
}
