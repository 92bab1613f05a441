//! The errors of this program, and its exit codes.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

pub use crate::client::ApiFault;
use crate::exit::Exit;
use ringfence_backends::BackendError;
pub use ringfence_core::error_chain;

/// A failure, in words for the person at the terminal.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The arguments are wrong.
    #[error("{0}")]
    Usage(String),
    /// The configuration cannot be used.
    #[error("{0}")]
    Config(Complaints),
    /// A file could not be read or written.
    #[error("cannot {doing} {}", path.display())]
    File {
        /// What was tried: "read", "write", ...
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file holds something other than it should.
    #[error("{}: {why}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Documents in a file cannot be used, one line for each fault.
    #[error("the file cannot be used as it is:\n{}", .0.join("\n"))]
    Documents(Vec<String>),
    /// A segment was changed after it was compared with its document.
    #[error(
        "segment {segment:?} was changed after it was read, and was not overwritten\n  look at ringfence segment diff, and apply again"
    )]
    ChangedMeanwhile {
        /// The segment's name.
        segment: String,
    },
    /// What is there differs from what a file says; the answer has said how.
    #[error("what is there differs from the file")]
    Differs,
    /// The service refused.
    #[error(transparent)]
    Api(Box<ApiFault>),
    /// The service did not answer.
    #[error("{url} cannot be reached\n  {hint}")]
    Unreachable {
        /// The service's URL.
        url: String,
        /// What to do.
        hint: String,
        /// The cause.
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// No service is known.
    #[error("no service is named, and {why}\n  {hint}")]
    Nowhere {
        /// Why none was found on this machine.
        why: String,
        /// What to do.
        hint: String,
    },
    /// The service answered something that this program does not understand.
    #[error("the answer from {url} cannot be understood: {why}")]
    Answer {
        /// The URL of the request.
        url: String,
        /// What is wrong with the answer.
        why: String,
    },
    /// An operation waits for a person, or was cancelled.
    #[error("{0}")]
    NeedsOperator(String),
    /// A dry run has shown that the fence would be refused.
    #[error("the fence would be refused: {detail}")]
    WouldBeRefused {
        /// Why.
        detail: String,
        /// The HTTP status of the refusal.
        status: u16,
    },
    /// A call of a webhook did not succeed.
    #[error("subscription {subscription:?}: the receiver {why}")]
    Undelivered {
        /// The subscription's name.
        subscription: String,
        /// What happened.
        why: String,
    },
    /// The object does not exist.
    #[error("{0}")]
    Missing(String),
    /// `--timeout` ran out.
    #[error("{0}")]
    TimedOut(String),
    /// Ctrl-C.
    #[error("{0}")]
    Stopped(String),
    /// `ringfence doctor` has found something that has to be mended.
    #[error("{0}")]
    Unwell(String),
    /// Some hosts were not imported.
    #[error("{failed} hosts were not imported; mend them and import once more")]
    NotImported {
        /// How many hosts.
        failed: usize,
    },
    /// A call to a cloud failed.
    #[error(transparent)]
    Cloud(#[from] BackendError),
    /// A service could not start, or stopped.
    #[error("{service}: {doing}")]
    Service {
        /// The service's name.
        service: &'static str,
        /// What the service was doing.
        doing: String,
        /// Why it failed.
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// Standard output is gone or full.
    #[error("cannot write the answer")]
    Output(#[from] io::Error),
}

impl CliError {
    /// A service failed while it was `doing` something.
    pub fn service(
        service: &'static str,
        doing: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::Service {
            service,
            doing: doing.into(),
            source: Some(source.into()),
        }
    }

    /// A file could not be used.
    pub fn file(doing: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::File {
            doing,
            path: path.into(),
            source,
        }
    }

    /// A file holds something else than it should.
    pub fn content(path: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Self::Content {
            path: path.into(),
            why: why.into(),
        }
    }

    /// The configuration cannot be used, for one reason.
    pub fn config(complaint: impl Into<String>) -> Self {
        Self::Config(Complaints::one(complaint))
    }

    /// The exit code; `--help` shows the list.
    #[must_use]
    pub fn exit_code(&self) -> Exit {
        match self {
            Self::Usage(_)
            | Self::Config(_)
            | Self::Content { .. }
            | Self::Documents(_)
            | Self::File { .. } => Exit::Usage,
            Self::Differs => Exit::Differs,
            Self::Api(fault) => fault.exit_code(),
            Self::Unreachable { .. } | Self::Nowhere { .. } => Exit::Unreachable,
            Self::Cloud(BackendError::Settings { .. }) => Exit::Usage,
            Self::Cloud(BackendError::Away { .. } | BackendError::Late { .. }) => Exit::Unreachable,
            Self::Missing(_) => Exit::NotFound,
            Self::NeedsOperator(_) => Exit::NeedsOperator,
            Self::WouldBeRefused { status: 409, .. } => Exit::Refused,
            Self::TimedOut(_) => Exit::TimedOut,
            Self::Stopped(_) => Exit::Stopped,
            Self::Undelivered { .. }
            | Self::ChangedMeanwhile { .. }
            | Self::Unwell(_)
            | Self::NotImported { .. }
            | Self::WouldBeRefused { .. }
            | Self::Cloud(_)
            | Self::Answer { .. }
            | Self::Service { .. }
            | Self::Output(_) => Exit::Failure,
        }
    }

    /// Whether the service may be back a little later.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Api(fault) => fault.is_passing(),
            _ => false,
        }
    }

    /// Whether the answer has said all, and the exit code repeats it for scripts.
    #[must_use]
    pub fn is_told(&self) -> bool {
        matches!(self, Self::Differs)
    }

    /// Whether the reader of the output has gone, as `head` does, which is no failure.
    #[must_use]
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// All errors of a configuration, one line each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Complaints(Vec<String>);

impl Complaints {
    /// One complaint.
    pub fn one(complaint: impl Into<String>) -> Self {
        Self(vec![complaint.into()])
    }

    /// Adds a complaint.
    pub fn add(&mut self, complaint: impl Into<String>) {
        self.0.push(complaint.into());
    }

    /// Adds the complaints of another list.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// An error if there is a complaint.
    pub fn into_result(self) -> Result<(), CliError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(CliError::Config(self))
        }
    }
}

impl fmt::Display for Complaints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => f.write_str(one),
            many => {
                write!(f, "the configuration cannot be used:")?;
                many.iter().try_for_each(|complaint| write!(f, "\n  {complaint}"))
            }
        }
    }
}
