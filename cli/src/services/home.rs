//! The data directory of standalone: its files, and its lock.

use std::fs::{DirBuilder, File, Permissions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use backon::{BlockingRetryable, ConstantBuilder};
use nix::sys::stat::{Mode, umask};

pub use crate::client::DATABASE;
use crate::client::LOCK_FILE;
use crate::error::CliError;

/// Hashes of the tokens.
pub const TOKENS: &str = "tokens.toml";
/// The token that the commands find without an option.
pub const ADMIN_TOKEN: &str = "admin.token";
/// The keys from which the secrets of subscriptions are derived.
pub const WEBHOOK_KEYS: &str = "webhooks.keys";
/// The simulated world.
pub const SIMULATORS: &str = "simulators.json";
/// The last port of the simulated world.
pub const SIMULATORS_PORT: &str = "simulators.port";

/// How the attempt to lock is repeated.
const LOCK_AGAIN: ConstantBuilder = ConstantBuilder::new()
    .with_delay(Duration::from_millis(20))
    .with_max_times(9);

/// Makes the directory if it does not exist, and holds its lock until the file is dropped. Only the owner may use the directory, also if it
/// existed.
///
/// # Errors
/// Another process holds it.
pub fn hold(path: &Path) -> Result<File, CliError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|e| CliError::file("make the data directory", path, e))?;
    keep_others_out(path);
    let lock = path.join(LOCK_FILE);
    let fault = |e| CliError::file("lock the data directory by", &lock, e);
    let file = File::options()
        .create(true)
        .write(true)
        .truncate(false)
        .mode(0o600)
        .open(&lock)
        .map_err(fault)?;
    match lock_in_time(&file) {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(CliError::Usage(format!(
            "another ringfence runs on the data directory {}; stop it, or name another with --data-dir",
            path.display()
        ))),
        Err(TryLockError::Error(e)) => Err(fault(e)),
    }
}

/// A directory that was made by hand may be open to all users. Files that are made in it from now on are for its owner alone.
fn keep_others_out(path: &Path) {
    umask(Mode::S_IRWXG | Mode::S_IRWXO);
    let is_open = std::fs::metadata(path).is_ok_and(|data| data.permissions().mode() & 0o077 != 0);
    if is_open && let Err(error) = std::fs::set_permissions(path, Permissions::from_mode(0o700)) {
        tracing::warn!(path = %path.display(), %error, "others can look into the data directory; make its mode 0700");
    }
}

/// Locks the file, although a command may be testing the lock at this moment.
fn lock_in_time(file: &File) -> Result<(), TryLockError> {
    (|| file.try_lock())
        .retry(LOCK_AGAIN)
        .when(|error| matches!(error, TryLockError::WouldBlock))
        .call()
}
