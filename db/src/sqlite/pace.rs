//! Whether commits are quick at the moment.
//!
//! To wait for another thread that waits for the disk takes longer than a good disk does. Where commits have been quick lately, the next one is
//! made where it is asked for; where one was not, they go to a thread on which waiting hurts nobody until they are quick again.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::connection::{CHECKPOINT_PAGES, Committed};

/// What a thread that answers requests may be held up by one commit.
const QUICK: Duration = Duration::from_millis(2);
/// So many quick ones in a row are believed.
const BELIEVED: u32 = 4;
/// The next commit upon a log of this length, in pages, may copy it into the file: that takes tens of milliseconds.
const NEARLY_COPIED: u32 = CHECKPOINT_PAGES - CHECKPOINT_PAGES / 16;

/// How commits have gone lately.
#[derive(Debug, Default)]
pub(super) struct Pace {
    quick_in_a_row: AtomicU32,
    log_pages: AtomicU32,
}

impl Pace {
    /// Whether the next one can be expected to be quick.
    pub fn is_quick(&self) -> bool {
        self.quick_in_a_row.load(Ordering::Relaxed) >= BELIEVED
            && self.log_pages.load(Ordering::Relaxed) < NEARLY_COPIED
    }

    /// Whether that of a transaction can in which others have worked for so long. What took long has changed much, which has to reach the disk.
    pub fn is_quick_after(&self, worked: Duration) -> bool {
        worked <= QUICK && self.is_quick()
    }

    /// Something in a transaction took so long. Where that is slow, so is the commit.
    pub fn note_work(&self, took: Duration) {
        if took > QUICK {
            self.quick_in_a_row.store(0, Ordering::Relaxed);
        }
    }

    /// Something was committed by the way, on a thread that may wait.
    pub fn note_log(&self, committed: Committed) {
        if let Some(pages) = committed.log_pages {
            self.log_pages.store(pages, Ordering::Relaxed);
        }
    }

    /// A commit took so long, with all that was done in it together with it.
    pub fn note(&self, took: Duration, committed: Committed) {
        self.note_log(committed);
        if committed.has_copied_the_log() {
            // That says nothing of the next one.
        } else if took > QUICK {
            self.quick_in_a_row.store(0, Ordering::Relaxed);
        } else if committed.log_pages.is_none() {
            // Nor does one that had nothing to write, and so did not wait for the disk.
        } else if self.quick_in_a_row.load(Ordering::Relaxed) < BELIEVED {
            self.quick_in_a_row.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(pages: u32) -> Committed {
        Committed {
            log_pages: Some(pages),
        }
    }

    #[test]
    fn some_quick_commits_are_believed_until_one_is_not() {
        let pace = Pace::default();
        for _ in 0..BELIEVED {
            assert!(!pace.is_quick());
            pace.note(QUICK, pages(1));
        }
        assert!(pace.is_quick());
        pace.note(QUICK + Duration::from_micros(1), pages(1));
        for _ in 0..BELIEVED {
            assert!(!pace.is_quick());
            pace.note(QUICK, pages(1));
        }
        assert!(pace.is_quick());
        assert!(pace.is_quick_after(QUICK));
        assert!(!pace.is_quick_after(QUICK + Duration::from_micros(1)));
    }

    #[test]
    fn what_writes_nothing_tells_nothing_of_the_disk_unless_it_is_slow() {
        let pace = Pace::default();
        for _ in 0..2 * BELIEVED {
            pace.note(Duration::ZERO, Committed::default());
        }
        assert!(!pace.is_quick());
        for _ in 0..BELIEVED {
            pace.note(QUICK, pages(1));
        }
        pace.note(2 * QUICK, Committed::default());
        assert!(!pace.is_quick());
    }

    #[test]
    fn one_that_will_copy_the_log_is_not_quick() {
        let pace = Pace::default();
        for _ in 0..BELIEVED {
            pace.note(QUICK, pages(NEARLY_COPIED));
        }
        assert!(!pace.is_quick());
        // One that wrote nothing has left the log as it was.
        pace.note(QUICK, Committed::default());
        assert!(!pace.is_quick());
        // It was copied, which took its time, and begins anew.
        pace.note(100 * QUICK, pages(CHECKPOINT_PAGES));
        assert!(!pace.is_quick());
        pace.note(QUICK, pages(40));
        assert!(pace.is_quick());
        pace.note_log(pages(NEARLY_COPIED));
        assert!(!pace.is_quick());
    }
}
