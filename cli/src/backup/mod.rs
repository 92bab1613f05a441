//! Backups of a standalone service: one file with all that has to outlive the process.
//!
//! It is a tar: first `manifest.json`, which names the schema and every file with its length and its SHA-256, then the files.

mod manifest;
mod restore;
mod take;

pub use restore::restore;
pub use take::take;

use crate::services::home;

/// Everything that a backup may hold.
const FILES: [&str; 5] = [
    home::DATABASE,
    home::TOKENS,
    home::ADMIN_TOKEN,
    home::WEBHOOK_KEYS,
    home::SIMULATORS,
];
/// The first file.
const MANIFEST: &str = "manifest.json";
