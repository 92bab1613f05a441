//! Permits: what a fence that was not asked for takes in the transaction in which it begins, and of which there are only so many.
//!
//! What the engine has counted may have changed until its decision is committed. A permit is counted by the transaction itself.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::opinions::COUNTS_S;
use crate::{SegmentId, Timestamp};

/// Seconds by which the clocks of engines may differ.
const CLOCKS_S: i64 = 2;

/// One of a bounded number, held by an operation for as long as it is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permit {
    /// What it is of: permits of one name are counted together.
    pub of: String,
    /// How many there are.
    pub at_most: u32,
    /// Whether it is kept when its operation is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_kept: bool,
}

impl Permit {
    /// To fence a host of the segment.
    #[must_use]
    pub fn of_segment(segment_id: SegmentId, at_most: u32) -> Self {
        Self {
            of: format!("segment {segment_id}"),
            at_most,
            is_kept: false,
        }
    }

    /// To begin a fence of a host of the segment by itself in this minute of the clock.
    #[must_use]
    pub fn of_minute(segment_id: SegmentId, now: Timestamp, at_most: u32) -> Self {
        Self {
            of: Self::name_of_minute(segment_id, now),
            at_most,
            is_kept: true,
        }
    }

    /// To fence a host of a group.
    pub(crate) fn of_group(name: &str, at_most: u32) -> Self {
        Self {
            of: format!("group {name}"),
            at_most,
            is_kept: false,
        }
    }

    /// To fence a host that carries OSDs of a Ceph that was asked at this time: no other such fence is under way, and none has begun since.
    pub(crate) fn of_ceph(fsid: &str, asked_at: Timestamp, now: Timestamp) -> Vec<Self> {
        let of = format!("ceph {fsid}");
        let since = Self::of_spans(&of, 1, asked_at, now);
        let under_way = Self {
            of,
            at_most: 1,
            is_kept: false,
        };
        [under_way].into_iter().chain(since).collect()
    }

    /// To begin a fence by what was found out at this time, after which so many may begin: one for each span of time since, so that what others have begun in it is counted. Each
    /// span has its share: others that have begun in different spans are counted nowhere together.
    pub(crate) fn of_spans(of: &str, at_most: u32, found_at: Timestamp, now: Timestamp) -> Vec<Self> {
        let names: Vec<String> = Self::names_of_spans(of.to_owned(), found_at, now).collect();
        let spans = u32::try_from(names.len()).unwrap_or(u32::MAX).max(1);
        let others = at_most.saturating_sub(1) / spans;
        let permit = |of| Self {
            of,
            at_most: at_most.min(others + 1),
            is_kept: true,
        };
        names.into_iter().map(permit).collect()
    }

    /// The names of those of the spans of time between two moments.
    pub(crate) fn names_of_spans(
        of: String,
        from: Timestamp,
        until: Timestamp,
    ) -> impl Iterator<Item = String> {
        let number = |at: Timestamp| at.timestamp().div_euclid(COUNTS_S);
        let margin = TimeDelta::seconds(CLOCKS_S);
        (number(from - margin)..=number(until + margin)).map(move |span| format!("{of} span {span}"))
    }

    /// The name of those of this minute.
    #[must_use]
    pub fn name_of_minute(segment_id: SegmentId, now: Timestamp) -> String {
        format!("segment {segment_id} at {}", now.format("%FT%H:%MZ"))
    }
}
