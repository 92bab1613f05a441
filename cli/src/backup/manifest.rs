//! The manifest of a backup.

use std::io::{Read, Write};

use ringfence_core::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::services::home;

/// Everything that a backup may hold.
pub const FILES: [&str; 5] = [
    home::DATABASE,
    home::TOKENS,
    home::ADMIN_TOKEN,
    home::WEBHOOK_KEYS,
    home::SIMULATORS,
];
/// The first file.
pub const MANIFEST: &str = "manifest.json";
/// The version of the form of this build's backups.
pub const FORMAT: u32 = 1;
/// The longest manifest.
pub const MAX_BYTES: u64 = 64 * 1024;

/// The manifest of a backup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: u32,
    /// The version of the build that made the backup.
    pub ringfence: String,
    /// When.
    pub created_at: Timestamp,
    /// The number of the database's schema.
    pub schema: i64,
    /// The files, in their order in the backup.
    pub files: Vec<Part>,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The file's name in the data directory.
    pub name: String,
    /// The file's length.
    pub bytes: u64,
    /// The file's SHA-256, in hexadecimal.
    pub sha256: String,
}

/// Copies a reader to its end, and returns its length and its SHA-256.
pub fn copy(from: &mut impl Read, to: &mut impl Write) -> std::io::Result<(u64, String)> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut bytes = 0;
    loop {
        let read = from.read(&mut buffer)?;
        let Some(piece) = buffer.get(..read).filter(|piece| !piece.is_empty()) else {
            return Ok((bytes, hex::encode(hash.finalize())));
        };
        hash.update(piece);
        to.write_all(piece)?;
        bytes += piece.len() as u64;
    }
}
