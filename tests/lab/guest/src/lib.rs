//! The format of the records that a virtual host writes to its disk and that the tests read from it.

use std::fmt::Write as _;

/// Bytes of one write: the smallest that a disk takes.
pub const BLOCK_BYTES: usize = 512;
/// The writers of one host, each with one write under way at a time.
pub const LANES: usize = 8;
/// Records of one lane before the first is overwritten.
pub const RING: usize = 32;
/// Bytes of the disk that belong to one host.
pub const AREA_BYTES: usize = LANES * RING * BLOCK_BYTES;
/// The port in the host where the guest program answers with the boot's id.
pub const ANSWER_PORT: u16 = 7000;

/// One write: its writer and its number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The number of the host, from 0.
    pub host: usize,
    /// The kernel's id of the boot: different after each start, and unchanged however often the machine is frozen.
    pub boot: String,
    /// From 0 to [`LANES`] - 1.
    pub lane: usize,
    /// From 1, in each lane of each boot.
    pub sequence: u64,
}

impl Record {
    /// The record's place, in bytes from the beginning of the disk.
    #[must_use]
    pub fn offset(&self) -> u64 {
        let slot = self.sequence % RING as u64;
        (self.host * AREA_BYTES + self.lane * RING * BLOCK_BYTES) as u64 + slot * BLOCK_BYTES as u64
    }

    /// The record as a block of the disk.
    #[must_use]
    pub fn to_block(&self) -> [u8; BLOCK_BYTES] {
        let mut text = String::new();
        let Self {
            host,
            boot,
            lane,
            sequence,
        } = self;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "record {host} {boot} {lane} {sequence}");
        let mut block = [0; BLOCK_BYTES];
        let length = text.len().min(BLOCK_BYTES);
        block[..length].copy_from_slice(&text.as_bytes()[..length]);
        block
    }

    /// The record in a block, if the block holds a complete record.
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
    fn an_incomplete_block_is_no_record() {
        let whole = record(0, 0, 1).to_block();
        let text = whole.iter().position(|&byte| byte == b'\n').unwrap();
        for block in [&[0; BLOCK_BYTES][..], &whole[..text], &[], b"record 1 x 2\n"] {
            assert_eq!(Record::from_block(block), None);
        }
    }

    #[test]
    fn no_host_and_no_lane_overwrites_another() {
        let last = |host, lane| record(host, lane, RING as u64 - 1).offset() + BLOCK_BYTES as u64;
        assert_eq!(last(0, 0), record(0, 1, 0).offset());
        assert_eq!(last(0, LANES - 1), record(1, 0, 0).offset());
    }
}
