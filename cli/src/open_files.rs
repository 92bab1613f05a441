//! The limit of files and connections that this process may have open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the limit as far as the system allows: the usual limit is for programs that wait in `select`.
pub fn allow_as_many_as_possible() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    if let Err(error) = raised {
        tracing::debug!(%error, "the limit of open files could not be raised");
    }
}

/// How many event streams leave room for requests, the database and the bus: half of the files.
pub fn streams_at_most(wanted: u32) -> u32 {
    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((u64::MAX, u64::MAX));
    wanted.min(u32::try_from(soft / 2).unwrap_or(u32::MAX)).max(1)
}
