//! Writes.

use chrono::TimeDelta;
use ringfence_core::{AttemptId, Generation, MethodId, TaskKind, Timestamp};
use uuid::Uuid;

/// What two engines' clocks may differ by.
const CLOCKS_APART: TimeDelta = TimeDelta::seconds(1);

/// What is written depends on what can still matter in a configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matters {
    /// The clock may be set, or other engines decide.
    pub clocks: bool,
    /// The host fences itself, or its workloads do not start with its boot.
    pub watchdog: bool,
    /// The host says that it writes a dump.
    pub kdump: bool,
    /// Hosts are fenced without being asked.
    pub automatic: bool,
    /// Persons say what they did.
    pub words: bool,
    /// Hosts say when they booted.
    pub dates: bool,
}

/// Whether a moment may be after another one that another clock has noted.
pub(super) fn may_be_after(at: Timestamp, other: Timestamp) -> bool {
    at > other - CLOCKS_APART
}

/// Writes numbers in as few bytes as they need.
pub(crate) struct Packer {
    bytes: Vec<u8>,
    now: Timestamp,
    real: Timestamp,
    generation: Generation,
    ids: Vec<(Uuid, u32)>,
    pub matters: Matters,
}

impl Packer {
    pub fn new(now: Timestamp, real: Timestamp, generation: Generation, matters: Matters) -> Self {
        Self {
            bytes: Vec::with_capacity(512),
            now,
            real,
            generation,
            ids: Vec::with_capacity(16),
            matters,
        }
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    pub fn kind(&mut self, kind: TaskKind) {
        match kind {
            TaskKind::Fencing(kind) => self.byte(kind as u8),
            TaskKind::Step(kind) => self.byte(0x80 | kind as u8),
        }
    }

    pub fn method(&mut self, id: MethodId) {
        self.number(id.0.as_u64_pair().0);
    }

    pub fn flag(&mut self, flag: bool) {
        self.bytes.push(u8::from(flag));
    }

    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.bytes.push(number.to_le_bytes()[0]);
    }

    pub fn count(&mut self, count: usize) {
        self.number(u64::try_from(count).unwrap_or(u64::MAX));
    }

    pub fn signed(&mut self, number: i64) {
        let folded = (number << 1) ^ (number >> 63);
        self.number(u64::from_le_bytes(folded.to_le_bytes()));
    }

    /// A time by the engine's clock.
    pub fn at(&mut self, at: Timestamp) {
        self.signed((at - self.now).num_milliseconds());
    }

    /// A time by the clock that is never set.
    pub fn really(&mut self, at: Timestamp) {
        self.signed((at - self.real).num_milliseconds());
    }

    /// Whether a time by the engine's clock is yet to come.
    pub fn is_ahead(&self, at: Timestamp) -> bool {
        at > self.now
    }

    /// Whether a time by the engine's clock may be after one that is noted now, by another clock.
    pub fn is_recent(&self, at: Timestamp) -> bool {
        may_be_after(at, self.now)
    }

    /// Milliseconds since a time by the clock that is never set.
    pub fn real_ms_since(&self, at: Timestamp) -> i64 {
        (self.real - at).num_milliseconds()
    }

    pub fn generation(&mut self, generation: Generation) {
        self.signed(i64::from(generation.0) - i64::from(self.generation.0));
    }

    pub fn id(&mut self, id: Uuid) {
        self.pair(id, 0);
    }

    pub fn attempt(&mut self, attempt: AttemptId) {
        self.pair(attempt.operation_id.0, attempt.number);
    }

    fn pair(&mut self, id: Uuid, number: u32) {
        let known = self.ids.iter().position(|known| *known == (id, number));
        let place = known.unwrap_or_else(|| {
            self.ids.push((id, number));
            self.ids.len() - 1
        });
        self.count(place);
    }

    pub fn text(&mut self, text: &str) {
        self.count(text.len());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Something or nothing.
    pub fn some<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.flag(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }

    /// As many as there are.
    pub fn list<T>(&mut self, all: impl ExactSizeIterator<Item = T>, mut write: impl FnMut(&mut Self, T)) {
        self.count(all.len());
        for one in all {
            write(self, one);
        }
    }
}
