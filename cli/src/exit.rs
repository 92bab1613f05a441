//! The exit codes of this program.

/// The exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Anything that has no code of its own.
    Failure = 1,
    /// Bad arguments, configuration or files.
    Usage = 2,
    /// The rules say no (409).
    Refused = 3,
    /// The object does not exist (404).
    NotFound = 4,
    /// A person has to act, or the operation was cancelled.
    NeedsOperator = 5,
    /// The service does not answer.
    Unreachable = 6,
    /// No token, a wrong one, or one that does not allow it (401, 403).
    NotAllowed = 7,
    /// `--timeout` ran out.
    TimedOut = 8,
    /// What is there differs from what a file says.
    Differs = 9,
    /// Ctrl-C, with the code of shells.
    Stopped = 130,
}

/// The table of exit codes at the end of `--help`.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed for another reason
  2  wrong usage or configuration
  3  refused by the rules (409)
  4  not found (404)
  5  needs an operator, or was cancelled
  6  the service cannot be reached
  7  not allowed: no token, a wrong one, or too small a role (401, 403)
  8  --timeout ran out
  9  a file differs from what is there (segment diff)
  130  stopped by Ctrl-C";
