//! Readings past this machine's cache, which would go on to show what it once read.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::OFlag;

/// What a direct reading needs its buffer, its place and its length to be a multiple of.
pub(super) const ALIGNED: usize = 4_096;

/// Reads at most `length` bytes at `offset`, both multiples of [`ALIGNED`].
///
/// # Errors
/// The file cannot be opened or read; `InvalidInput` where its file system has no direct readings.
pub(super) fn read(path: &Path, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let file = open(path, OFlag::O_DIRECT)?;
    let mut buffer = vec![0; length + ALIGNED];
    let start = buffer.as_ptr().align_offset(ALIGNED);
    let filled = fill(&file, &mut buffer[start..start + length], offset)?;
    buffer.drain(..start);
    buffer.truncate(filled);
    Ok(buffer)
}

/// As [`read`], from the beginning; where the file system has no direct readings, as it was when the file was opened.
pub(super) fn read_start(path: &Path, length: usize) -> io::Result<Vec<u8>> {
    match read(path, 0, length) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            let mut buffer = vec![0; length];
            let filled = fill(&open(path, OFlag::empty())?, &mut buffer, 0)?;
            buffer.truncate(filled);
            Ok(buffer)
        }
        other => other,
    }
}

/// Nothing is waited for that is no file or device: a pipe would never be opened.
fn open(path: &Path, flag: OFlag) -> io::Result<File> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY | flag;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)
}

fn fill(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64)? {
            0 => break,
            more => filled += more,
        }
        // What is not aligned is the end of a file, and cannot be read on from directly.
        if !filled.is_multiple_of(ALIGNED) {
            break;
        }
    }
    Ok(filled)
}
