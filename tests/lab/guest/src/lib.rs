//! What a virtual host and the reader of its disk agree on: where a record lies, and what it says.

use std::fmt::Write as _;

/// One write, in bytes: the smallest that a disk takes.
pub const BLOCK_BYTES: usize = 512;
/// The writers of one host, each with one write under way at a time.
pub const LANES: usize = 8;
/// Records of one lane before the first is written over.
pub const RING: usize = 32;
/// What one host has of the disk.
pub const AREA_BYTES: usize = LANES * RING * BLOCK_BYTES;
/// The port in the host at which it answers which boot it is.
pub const ANSWER_PORT: u16 = 7000;

/// Who wrote, and how much it had written before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The number of the host, from 0.
    pub host: usize,
    /// The kernel's id of the boot: another one after each start, and no other however often the machine stood still.
    pub boot: String,
    /// From 0 to [`LANES`] - 1.
    pub lane: usize,
    /// From 1, in each lane of each boot.
    pub sequence: u64,
}

impl Record {
    /// Where it is written, in bytes from the beginning of the disk.
    #[must_use]
    pub fn offset(&self) -> u64 {
        let slot = self.sequence % RING as u64;
        (self.host * AREA_BYTES + self.lane * RING * BLOCK_BYTES) as u64 + slot * BLOCK_BYTES as u64
    }

    /// What is written.
    #[must_use]
    pub fn to_block(&self) -> [u8; BLOCK_BYTES] {
        let mut text = String::new();
        let Self {
            host,
            boot,
            lane,
            sequence,
        } = self;
        // A String takes everything.
        let _ = writeln!(text, "record {host} {boot} {lane} {sequence}");
        let mut block = [0; BLOCK_BYTES];
        let length = text.len().min(BLOCK_BYTES);
        block[..length].copy_from_slice(&text.as_bytes()[..length]);
        block
    }

    /// The record in a block, if there is a whole one.
    #[must_use]
    pub fn from_block(block: &[u8]) -> Option<Self> {
        let end = block.iter().position(|&byte| byte == b'\n')?;
        let text = std::str::from_utf8(&block[..end]).ok()?;
        let mut words = text.strip_prefix("record ")?.split(' ');
        let mut next = || words.next();
        let record = Self {
            host: next()?.parse().ok()?,
            boot: next()?.to_owned(),
            lane: next()?.parse().ok()?,
            sequence: next()?.parse().ok()?,
        };
        next().is_none().then_some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(host: usize, lane: usize, sequence: u64) -> Record {
        Record {
            host,
            boot: "4ca4f9a8-3f66-4c1c-bb2d-0c8d1bb0a3a0".to_owned(),
            lane,
            sequence,
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let written = record(1, 7, u64::MAX);
        assert_eq!(Record::from_block(&written.to_block()), Some(written));
    }

    #[test]
    fn what_is_no_whole_record_is_none() {
        let whole = record(0, 0, 1).to_block();
        let text = whole.iter().position(|&byte| byte == b'\n').unwrap();
        for block in [&[0; BLOCK_BYTES][..], &whole[..text], &[], b"record 1 x 2\n"] {
            assert_eq!(Record::from_block(block), None);
        }
    }

    #[test]
    fn no_host_and_no_lane_writes_over_another() {
        let last = |host, lane| record(host, lane, RING as u64 - 1).offset() + BLOCK_BYTES as u64;
        assert_eq!(last(0, 0), record(0, 1, 0).offset());
        assert_eq!(last(0, LANES - 1), record(1, 0, 0).offset());
    }
}
