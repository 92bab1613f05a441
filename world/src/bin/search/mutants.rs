//! What the search notices of a guard that is switched off.

use std::process::ExitCode;
use std::sync::atomic::Ordering;

use ringfence_core::{Guard, switch_off};
use ringfence_world::search::{Ending, History, live_through, shrink};

use crate::{Arguments, look, tell};

/// How it ends where a history goes wrong with every guard on.
const WRONG_IN_ANY_CASE: u8 = 3;

/// Searches with guards switched off. Fails if the absence of one is not noticed.
pub(super) fn run(name: &str, arguments: &Arguments, seed: u64) -> ExitCode {
    let mut survivors = Vec::new();
    for guard in Guard::ALL
        .iter()
        .filter(|guard| name == "all" || guard.name() == name)
    {
        switch_off(Some(*guard));
        let (found, began) = look(arguments, seed);
        let mut violated = found.violated.lock();
        violated.sort();
        let lived = found.lived.load(Ordering::Relaxed);
        let seconds = began.elapsed().as_secs_f64();
        match violated.first() {
            Some((number, what)) => {
                let history = History::of(seed, *number);
                println!(
                    "{:<28} noticed in history {number} of seed {seed} after {lived} in {seconds:.1} s: {what}",
                    guard.name()
                );
                if name != "all" {
                    tell(&shrink(&history));
                }
                // What goes wrong with every guard on tells nothing about this one.
                switch_off(None);
                if !matches!(live_through(&history, false).0, Ending::Well(_)) {
                    println!(
                        "history {number} of seed {seed} goes wrong with every guard on: mend the rules first"
                    );
                    return ExitCode::from(WRONG_IN_ANY_CASE);
                }
            }
            None => {
                println!(
                    "{:<28} NOT NOTICED in {lived} histories, {seconds:.1} s",
                    guard.name()
                );
                survivors.push(guard.name());
            }
        }
    }
    println!(
        "{} of {} not noticed: {}",
        survivors.len(),
        Guard::ALL.len(),
        survivors.join(", ")
    );
    if survivors.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
