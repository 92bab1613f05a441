//! Makes a history that must never be as short as it can be.

use super::run::{Ending, History, live_through};

/// Leaves out whatever is not needed for the history to end as it did.
#[must_use]
pub fn shrink(history: &History) -> History {
    let Some(sort) = sort(&live_through(history, false).0) else {
        return history.clone();
    };
    let mut best = history.clone();
    if let Ending::Violated(_, at) = live_through(&best, false).0 {
        best.actions.truncate(at);
    }
    let mut size = best.actions.len().div_ceil(2).max(1);
    loop {
        let mut any = false;
        let mut at = 0;
        while at < best.actions.len() {
            let mut shorter = best.clone();
            shorter.actions.drain(at..(at + size).min(shorter.actions.len()));
            if self::sort(&live_through(&shorter, false).0).as_ref() == Some(&sort) {
                best = shorter;
                any = true;
            } else {
                at += size;
            }
        }
        if size == 1 && !any {
            return best;
        }
        size = size
            .div_ceil(2)
            .max(1)
            .min(if any { size } else { size.div_ceil(2).max(1) });
    }
}

/// What is wrong with an ending, as far as two can be compared.
fn sort(ending: &Ending) -> Option<String> {
    match ending {
        Ending::Well(_) => None,
        Ending::Violated(violation, _) => Some(format!("{violation:?}")),
        Ending::Endless(_) => Some("endless".to_owned()),
    }
}
