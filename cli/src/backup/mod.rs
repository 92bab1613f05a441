//! Backups of a standalone service: one file with all data that has to outlive the process.
//!
//! A backup is a tar: first `manifest.json`, which holds the schema's number and every file's length and SHA-256, then the files.

mod manifest;
mod restore;
mod take;

pub use restore::restore;
pub use take::take;
