//! The folder of a peer.

use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::error::{During, LabError};
use crate::leash::Leash;

/// Time between two checks whether a peer is ready.
const POLL: Duration = Duration::from_millis(50);
/// The most tries to remove a folder.
const REMOVALS: usize = 100;
/// The most of a log that an error quotes, in bytes.
const TAIL_BYTES: usize = 3000;

/// A temporary folder, kept short: a Unix socket's path has at most 107 characters.
#[derive(Debug)]
pub(crate) struct Home {
    folder: TempDir,
}

impl Home {
    pub(crate) fn new(peer: &str) -> Result<Self, LabError> {
        let folder = tempfile::Builder::new()
            .prefix(&format!("rf-{peer}-"))
            .tempdir()
            .during(|| format!("making a folder for {peer}"))?;
        Ok(Self { folder })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.join(name).display().to_string()
    }

    /// Writes a file that only its owner can read.
    pub(crate) fn write(&self, name: &str, content: &str) -> Result<PathBuf, LabError> {
        let path = self.join(name);
        std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(content.as_bytes()))
            .during(|| format!("writing {}", path.display()))?;
        Ok(path)
    }

    pub(crate) fn write_script(&self, name: &str, content: &str) -> Result<PathBuf, LabError> {
        let path = self.write(name, content)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700))
            .during(|| format!("making {} executable", path.display()))?;
        Ok(path)
    }

    /// Removes the folder. A program that is being killed may still write there, so that one try may not do.
    pub(crate) fn remove(&self) {
        for _ in 0..REMOVALS {
            let _ = std::fs::remove_dir_all(self.path());
            if !self.path().exists() {
                return;
            }
            std::thread::sleep(POLL);
        }
    }

    pub(crate) fn make_folder(&self, name: &str) -> Result<PathBuf, LabError> {
        let path = self.join(name);
        std::fs::create_dir_all(&path).during(|| format!("making {}", path.display()))?;
        Ok(path)
    }
}

/// Waits until `is_ready`, the program's end or the end of the time, whichever comes first.
pub(crate) fn wait_ready(
    peer: &'static str,
    leash: &Leash,
    log: &Path,
    limit: Duration,
    mut is_ready: impl FnMut() -> bool,
) -> Result<(), LabError> {
    let begun = Instant::now();
    while begun.elapsed() < limit && leash.is_running() {
        if is_ready() {
            return Ok(());
        }
        std::thread::sleep(POLL);
    }
    Err(LabError::NotReady {
        peer,
        seconds: limit.as_secs(),
        log: log.to_owned(),
        tail: tail(&std::fs::read(log).unwrap_or_default()),
    })
}

/// Writes into the log of a program that did not become ready that it is started once more.
pub(crate) fn note_second_start(log: &Path) {
    let noted = std::fs::OpenOptions::new().append(true).open(log);
    // The line is only for readers of the log, so that an error is ignored.
    let _ = noted.and_then(|mut log| {
        writeln!(
            log,
            "*** not ready in time: the program is ended, and started once more"
        )
    });
}

/// The end of a text.
pub(crate) fn tail(text: &[u8]) -> String {
    let from = text.len().saturating_sub(TAIL_BYTES);
    String::from_utf8_lossy(&text[from..]).trim().to_owned()
}

/// A password of 32 hexadecimal digits.
pub(crate) fn random_password() -> Result<String, LabError> {
    let mut bytes = [0u8; 16];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .during(|| "reading /dev/urandom".to_owned())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
