//! The records on the shared disk, read from outside the hosts.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use ringfence_guest::{BLOCK_BYTES, Record};

use crate::error::{During, LabError};

/// Time between two looks: much less than a host needs to fill all places of its records.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// A record that has landed, and when: by this machine's clock, not by that of the host, which may be frozen.
#[derive(Clone, Debug)]
pub struct Landed {
    /// The record.
    pub record: Record,
    /// When the look before began, which did not find the record.
    pub not_before: Instant,
    /// When the look ended that found the record.
    pub not_after: Instant,
}

/// Reads the disk all the time.
#[derive(Debug)]
pub(super) struct Watch {
    seen: Arc<Mutex<Seen>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Seen {
    disk: File,
    blocks: Vec<u8>,
    looked_at: Instant,
    landed: Vec<Landed>,
}

impl Watch {
    /// Starts with an empty disk.
    pub(super) fn start(disk: &Path, bytes: usize) -> Result<Self, LabError> {
        let disk = File::open(disk).during(|| format!("opening {}", disk.display()))?;
        let seen = Arc::new(Mutex::new(Seen {
            disk,
            blocks: vec![0; bytes],
            looked_at: Instant::now(),
            landed: Vec::new(),
        }));
        let over = Arc::new(AtomicBool::new(false));
        let (of_thread, until) = (Arc::clone(&seen), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            while !until.load(Ordering::Relaxed) && lock(&of_thread).look().is_ok() {
                std::thread::sleep(BETWEEN_LOOKS);
            }
        });
        Ok(Self {
            seen,
            over,
            thread: Some(thread),
        })
    }

    /// Reads the disk now, and returns all records that have landed so far, in the order of the looks.
    pub(super) fn landed(&self) -> Result<Vec<Landed>, LabError> {
        let mut seen = lock(&self.seen);
        seen.look().during(|| "reading the shared disk".to_owned())?;
        Ok(seen.landed.clone())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread is ignored.
            let _ = thread.join();
        }
    }
}

impl Seen {
    fn look(&mut self) -> std::io::Result<()> {
        let begun = Instant::now();
        let mut now = vec![0; self.blocks.len()];
        self.disk.read_exact_at(&mut now, 0)?;
        let not_after = Instant::now();
        let known = self.blocks.chunks_exact_mut(BLOCK_BYTES);
        for (known, block) in known.zip(now.chunks_exact(BLOCK_BYTES)) {
            if known == block {
                continue;
            }
            // A record that is being written is read again at the next look.
            if let Some(record) = Record::from_block(block) {
                known.copy_from_slice(block);
                self.landed.push(Landed {
                    record,
                    not_before: self.looked_at,
                    not_after,
                });
            }
        }
        self.looked_at = begun;
        Ok(())
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_is_reported_once_with_the_time_of_its_landing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let bytes = ringfence_guest::AREA_BYTES;
        file.as_file().set_len(bytes as u64).unwrap();
        let watch = Watch::start(file.path(), bytes).unwrap();
        let first = Record {
            host: 0,
            boot: "a-boot".to_owned(),
            lane: 3,
            sequence: 1,
        };
        let second = Record {
            sequence: 2,
            ..first.clone()
        };
        assert!(watch.landed().unwrap().is_empty());

        let before = Instant::now();
        write(file.as_file(), &first);
        write(file.as_file(), &first);
        let landed = watch.landed().unwrap();
        assert_eq!(landed.len(), 1);
        assert_eq!(landed[0].record, first);
        assert!(landed[0].not_after >= before && landed[0].not_before <= landed[0].not_after);

        let between = Instant::now();
        watch.landed().unwrap();
        write(file.as_file(), &second);
        let landed = watch.landed().unwrap();
        assert_eq!(landed.len(), 2);
        assert_eq!(landed[1].record, second);
        assert!(
            landed[1].not_before >= between,
            "the record had not landed at {between:?}"
        );
    }

    #[test]
    fn an_incomplete_record_is_read_again() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let bytes = ringfence_guest::AREA_BYTES;
        file.as_file().set_len(bytes as u64).unwrap();
        let watch = Watch::start(file.path(), bytes).unwrap();
        let record = Record {
            host: 0,
            boot: "a-boot".to_owned(),
            lane: 0,
            sequence: 1,
        };
        let half = &record.to_block()[..12];
        file.as_file().write_all_at(half, record.offset()).unwrap();
        assert!(watch.landed().unwrap().is_empty());
        write(file.as_file(), &record);
        assert_eq!(watch.landed().unwrap().len(), 1);
    }

    fn write(disk: &File, record: &Record) {
        disk.write_all_at(&record.to_block(), record.offset()).unwrap();
    }
}
