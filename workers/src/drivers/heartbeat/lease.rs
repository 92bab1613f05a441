//! A delta lease of sanlock: the sector in which one host of a lockspace renews its timestamp.
//!
//! The form is that of `struct leader_record` in sanlock's `leader.h`, all numbers little-endian.

use crc::{Algorithm, CRC_32_ISCSI, Crc};

/// The bytes of a lease that its checksum covers, and the checksum behind them.
const CHECKED: usize = 168;
const MAGIC: u32 = 0x1221_2010;
/// The upper half of the version; the lower one is for forms that can be read as this one.
const VERSION: u32 = 3;
const NAME_BYTES: usize = 48;

/// What a lease says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    pub sector_bytes: u32,
    pub flags: u32,
    /// The host id that has it, counted from 1; 0 if no host ever had it.
    pub owner: u64,
    /// Advanced whenever a host takes it.
    pub generation: u64,
    pub lockspace: String,
    /// The name of the host that has it.
    pub name: String,
    /// The time that has passed for the owner, in seconds; 0 if it has given the lease back.
    pub timestamp: u64,
}

impl Lease {
    /// The lease at the beginning of a sector.
    ///
    /// # Errors
    /// There is none, or it is damaged; in words.
    pub fn parse(sector: &[u8]) -> Result<Self, &'static str> {
        let magic = u32_at(sector, 0).ok_or("it is cut off")?;
        if magic != MAGIC {
            return Err("it holds no delta lease of sanlock");
        }
        let version = u32_at(sector, 4).ok_or("it is cut off")?;
        if version >> 16 != VERSION {
            return Err("its delta lease has another version");
        }
        let checked = sector.get(..CHECKED).ok_or("it is cut off")?;
        if u32_at(sector, CHECKED) != Some(checksum(checked)) {
            return Err("its checksum is wrong");
        }
        Self::fields(sector).ok_or("it is cut off")
    }

    fn fields(sector: &[u8]) -> Option<Self> {
        Some(Self {
            flags: u32_at(sector, 8)?,
            sector_bytes: u32_at(sector, 12)?,
            owner: u64_at(sector, 32)?,
            generation: u64_at(sector, 40)?,
            lockspace: name_at(sector, 56)?,
            name: name_at(sector, 104)?,
            timestamp: u64_at(sector, 152)?,
        })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes(four.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let eight = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(eight.try_into().ok()?))
}

fn name_at(bytes: &[u8], at: usize) -> Option<String> {
    let field = bytes.get(at..at + NAME_BYTES)?;
    let name = field.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// CRC-32C as sanlock counts it: from another beginning than usual (0xFFFFFFFE, turned round as the library wants it), and not turned over at the end.
const CHECKSUM: Algorithm<u32> = Algorithm {
    init: 0x7FFF_FFFF,
    xorout: 0,
    ..CRC_32_ISCSI
};

fn checksum(bytes: &[u8]) -> u32 {
    Crc::<u32>::new(&CHECKSUM).checksum(bytes)
}
