//! The archive: one file per day and kind, a JSON object per line. What is removed is on the disk before.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ringfence_core::Timestamp;
use ringfence_db::{Kept, OldRow};

use crate::EngineError;

/// Appends rows and waits until they are on the disk. A row may be there twice: where its removal failed afterwards.
pub(super) async fn write(
    dir: PathBuf,
    what: Kept,
    now: Timestamp,
    rows: &[OldRow],
) -> Result<(), EngineError> {
    let mut text = String::new();
    for row in rows {
        text.push_str(&row.json.to_string());
        text.push('\n');
    }
    let path = dir.join(format!("{}-{}.jsonl", what.as_str(), now.format("%Y-%m-%d")));
    let fault = |path: &Path, source| EngineError::Archive {
        path: path.to_owned(),
        source,
    };
    let (name, written) = tokio::task::spawn_blocking(move || {
        let written = append(&dir, &path, &text);
        (path, written)
    })
    .await
    .map_err(|error| fault(Path::new("retention.archive_dir"), std::io::Error::other(error)))?;
    written.map_err(|source| fault(&name, source))
}

fn append(dir: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let mut file = OpenOptions::new()
        .create(true)
        .read(true)
        .append(true)
        .mode(0o600)
        .open(path)?;
    if ends_within_a_line(&mut file)? {
        file.write_all(b"\n")?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    File::open(dir)?.sync_all()
}

/// A process that died while it wrote has left half a line.
fn ends_within_a_line(file: &mut File) -> std::io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}
