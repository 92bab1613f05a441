//! Ids of what is kept.

use uuid::Uuid;

/// A new id, which begins with the time: what comes about together stands together in every index, so that a change touches few of
/// its pages, however many rows there are. A secret must not be made of it.
pub(crate) fn new_id() -> Uuid {
    Uuid::now_v7()
}
