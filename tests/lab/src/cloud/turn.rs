//! Which OpenStack of a run a process has. Two do not share one: a scheduler would give one test's server to another test's host, and a
//! test that looks at all hosts of a cloud would see those of the other.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::path::PathBuf;

use parking_lot::Mutex;

use crate::error::{During, LabError};

/// The description that this process has, locked until the process ends.
static OWN: Mutex<Option<(PathBuf, File)>> = Mutex::new(None);

/// The first of these descriptions that no other process has; `None` if there are none.
pub(super) fn own(files: &OsStr) -> Result<Option<PathBuf>, LabError> {
    let mut own = OWN.lock();
    if own.is_none() {
        *own = take(files)?;
    }
    Ok(own.as_ref().map(|(file, _)| file.clone()))
}

fn take(files: &OsStr) -> Result<Option<(PathBuf, File)>, LabError> {
    let mut first = None;
    for path in std::env::split_paths(files).filter(|path| !path.as_os_str().is_empty()) {
        let file = File::open(&path).during(|| format!("opening {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => return Ok(Some((path, file))),
            Err(TryLockError::WouldBlock) => first = first.or(Some((path, file))),
            Err(TryLockError::Error(source)) => {
                return Err(source).during(|| format!("locking {}", path.display()));
            }
        }
    }
    if let Some((path, file)) = &first {
        file.lock().during(|| format!("waiting for {}", path.display()))?;
    }
    Ok(first)
}
