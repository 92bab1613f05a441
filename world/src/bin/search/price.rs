//! What each guard costs: the hosts that would rightly be FENCED without it, and the persons that are asked because of it.

use std::collections::BTreeSet;
use std::process::ExitCode;

use ringfence_core::{Guard, switch_off};
use ringfence_world::search::{Ending, History, Reached, live_through};

use crate::Arguments;

/// Without these nothing ends, and a history lasts as long as it is let.
const ENDINGS: [Guard; 3] = [Guard::AttemptsEnd, Guard::LevelEnds, Guard::LineEnds];

/// What a history came to; `None` if something was wrong in it.
type End = Option<BTreeSet<Reached>>;

/// Lives through all histories with every guard on, then without each of them.
pub(super) fn run(arguments: &Arguments, seed: u64) -> ExitCode {
    switch_off(None);
    let with_all = ends(arguments.histories, seed);
    println!("{} histories with seed {seed}", arguments.histories);
    println!(
        "{:<28} {:>10} {:>10} {:>10}",
        "guard", "not FENCED", "gate shut", "asks"
    );
    let priced = Guard::ALL.iter().filter(|guard| !ENDINGS.contains(guard));
    for guard in priced {
        switch_off(Some(*guard));
        let without = ends(arguments.histories, seed);
        let count = |is_price: fn(&BTreeSet<Reached>, &BTreeSet<Reached>) -> bool| {
            let both = with_all.iter().zip(&without);
            both.filter(|(with, without)| matches!((with, without), (Some(with), Some(without)) if is_price(with, without)))
                .count()
        };
        println!(
            "{:<28} {:>10} {:>10} {:>10}",
            guard.name(),
            count(|with, without| lacks(with, without, Reached::Fenced)),
            count(|with, without| lacks(with, without, Reached::OpenGate)),
            count(|with, without| lacks(without, with, Reached::NeedsOperator)),
        );
    }
    ExitCode::SUCCESS
}

/// Whether the first one has not come to what the second one has.
fn lacks(one: &BTreeSet<Reached>, other: &BTreeSet<Reached>, what: Reached) -> bool {
    other.contains(&what) && !one.contains(&what)
}

fn ends(histories: u64, seed: u64) -> Vec<End> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let share = histories.div_ceil(threads);
    let part = |first: u64| -> Vec<End> {
        let numbers = first..(first + share).min(histories);
        numbers.map(|number| end(&History::of(seed, number))).collect()
    };
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || part(thread * share)))
            .collect();
        parts
            .into_iter()
            .flat_map(|part| part.join().unwrap_or_default())
            .collect()
    })
}

fn end(history: &History) -> End {
    match live_through(history, false).0 {
        Ending::Well(reached) => Some(reached),
        Ending::Violated(..) | Ending::Endless(_) => None,
    }
}
