//! What can go wrong with a peer.

use std::io;
use std::path::PathBuf;

/// Why a peer could not be started, stopped or spoken to.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A program that the peer consists of is not installed.
    #[error("{program} was not found; Debian has it in the package {package}")]
    Missing {
        /// The program.
        program: &'static str,
        /// Where Debian keeps it.
        package: &'static str,
    },
    /// Something of the operating system failed.
    #[error("{what}")]
    Os {
        /// What was being done.
        what: String,
        /// What the system said.
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
        /// The peer.
        peer: &'static str,
        /// How long it was given.
        seconds: u64,
        /// Where it wrote its log.
        log: PathBuf,
        /// The end of that log.
        tail: String,
    },
    /// A service could not be reached.
    #[error("{what}")]
    Unreachable {
        /// What it was asked.
        what: String,
        /// What went wrong.
        #[source]
        source: Box<ureq::Error>,
    },
    /// A service answered with something else than was asked for.
    #[error("{what}: {status} {body}")]
    Refused {
        /// What it was asked.
        what: String,
        /// The HTTP status.
        status: u16,
        /// The end of the answer.
        body: String,
    },
    /// What was waited for did not come.
    #[error("{what} did not happen within {seconds} s; seen last: {seen}")]
    NotSeen {
        /// What was waited for.
        what: String,
        /// How long.
        seconds: u64,
        /// What there was instead.
        seen: String,
    },
    /// Something is not the JSON that it should be.
    #[error("cannot read {what}")]
    Json {
        /// The file or the answer.
        what: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
}

/// Says what was being done when the operating system refused.
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
