//! Making a backup, also while the service runs.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ringfence_core::Timestamp;
use ringfence_db::Database;

use super::manifest::{FILES, MANIFEST};
use super::manifest::{FORMAT, Manifest, Part, copy};
use crate::error::CliError;
use crate::services::home;

/// Writes a backup of the data directory into a new file, which only its owner may read; returns the manifest.
pub async fn take(data_dir: &Path, file: &Path, now: Timestamp) -> Result<Manifest, CliError> {
    if file.exists() {
        return Err(CliError::Usage(format!(
            "{} is there already; name a new file",
            file.display()
        )));
    }
    let database = data_dir.join(home::DATABASE);
    if !database.exists() {
        return Err(CliError::Usage(format!(
            "{} holds no {}: no standalone service has run there; name its data directory with --data-dir",
            data_dir.display(),
            home::DATABASE
        )));
    }
    let scratch = Scratch::beside(file, now)?;
    let copied = scratch.0.join(home::DATABASE);
    let schema = copy_database(&database, &copied).await?;
    let mut manifest = Manifest {
        format: FORMAT,
        ringfence: env!("CARGO_PKG_VERSION").to_owned(),
        created_at: now,
        schema,
        files: Vec::new(),
    };
    // Small files are read once, so that the measured bytes are the written ones.
    let mut contents = Vec::new();
    for name in FILES {
        let path = if name == home::DATABASE {
            copied.clone()
        } else {
            data_dir.join(name)
        };
        let content = match File::open(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(CliError::file("read", path, error)),
        };
        let fault = |e| CliError::file("copy", &path, e);
        let (part, content) = if path == copied {
            measure(name, content, &path, std::io::sink()).map_err(fault)?
        } else {
            let kept = scratch.0.join(name);
            let to = private(&kept).map_err(fault)?;
            measure(name, content, &kept, to).map_err(fault)?
        };
        manifest.files.push(part);
        contents.push(content);
    }
    let new = scratch.0.join("backup.tar");
    write(&new, &manifest, contents).map_err(|e| CliError::file("write", &new, e))?;
    std::fs::rename(&new, file).map_err(|e| CliError::file("write", file, e))?;
    sync_parent(file).map_err(|e| CliError::file("write", file, e))?;
    Ok(manifest)
}

async fn copy_database(from: &Path, to: &Path) -> Result<i64, CliError> {
    let fault = |e| CliError::service("backup", "cannot copy the database", e);
    let db = Database::open(&format!("sqlite://{}", from.display()), 1)
        .await
        .map_err(fault)?;
    let copied = ringfence_db::copy_sqlite(&db, to).await;
    db.close().await;
    copied.map_err(fault)?;
    let db = Database::open(&format!("sqlite://{}", to.display()), 1)
        .await
        .map_err(fault)?;
    let version = ringfence_db::schema_version(&db).await;
    db.close().await;
    version.map_err(fault)?.ok_or_else(|| {
        CliError::Usage(format!(
            "{} has no schema yet: there is nothing to back up",
            from.display()
        ))
    })
}

/// Copies a file to `kept`, and opens the copy for the backup.
fn measure(name: &str, mut content: File, kept: &Path, mut to: impl Write) -> std::io::Result<(Part, File)> {
    let (bytes, sha256) = copy(&mut content, &mut to)?;
    let part = Part {
        name: name.to_owned(),
        bytes,
        sha256,
    };
    Ok((part, File::open(kept)?))
}

fn write(path: &Path, manifest: &Manifest, contents: Vec<File>) -> std::io::Result<()> {
    let mut tar = tar::Builder::new(private(path)?);
    let text = serde_json::to_vec_pretty(manifest)?;
    let at = manifest.created_at.timestamp();
    append(&mut tar, MANIFEST, at, text.len() as u64, text.as_slice())?;
    for (part, content) in manifest.files.iter().zip(contents) {
        append(&mut tar, &part.name, at, part.bytes, content)?;
    }
    tar.into_inner()?.sync_all()
}

fn append(
    tar: &mut tar::Builder<File>,
    name: &str,
    at: i64,
    bytes: u64,
    content: impl Read,
) -> std::io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o600);
    header.set_mtime(u64::try_from(at).unwrap_or(0));
    header.set_size(bytes);
    tar.append_data(&mut header, name, content)
}

/// A new file that only its owner may read.
pub(super) fn private(path: &Path) -> std::io::Result<File> {
    File::options()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(path)
}

pub(super) fn sync_parent(path: &Path) -> std::io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// A directory for unfinished files, removed when the value is dropped.
pub(super) struct Scratch(pub PathBuf);

impl Scratch {
    /// On one file system with `path`.
    pub fn beside(path: &Path, now: Timestamp) -> Result<Self, CliError> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(
            ".new-{}-{}",
            now.format("%Y%m%dT%H%M%S%6fZ"),
            std::process::id()
        ));
        let scratch = path.with_file_name(name);
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&scratch)
            .map_err(|e| CliError::file("make", &scratch, e))?;
        Ok(Self(scratch))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // After a restore the directory has another name.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
