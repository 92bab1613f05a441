//! Permits: what a fence that was not asked for takes in the transaction in which it begins, and of which there are only so many.
//!
//! What the engine has counted may have changed until its decision is committed. A permit is counted by the transaction itself.

use serde::{Deserialize, Serialize};

use crate::SegmentId;

/// One of a bounded number, held by an operation for as long as it is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permit {
    /// What it is of: permits of one name are counted together.
    pub of: String,
    /// How many operations may hold one at one time, this one counted.
    pub at_most: u32,
}

impl Permit {
    /// To fence a host of the segment.
    #[must_use]
    pub fn of_segment(segment_id: SegmentId, at_most: u32) -> Self {
        Self {
            of: format!("segment {segment_id}"),
            at_most,
        }
    }
}
