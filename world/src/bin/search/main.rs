//! Searches random histories for one that must never be. Every history has a number: one seed and number give one history.

#![expect(clippy::print_stdout, reason = "it tells what it finds")]

#[cfg(feature = "mutants")]
mod mutants;
#[cfg(feature = "mutants")]
mod price;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use parking_lot::Mutex;
use ringfence_world::search::{Ending, History, Reached, live_through, shrink};

#[derive(Parser)]
#[command(about = "Searches random histories for one that must never be")]
struct Arguments {
    /// How many histories, 1 to 1,000,000,000
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    histories: u64,
    /// Where chance begins; another one each time if absent
    #[arg(long)]
    seed: Option<u64>,
    /// Seconds after which no further history begins
    #[arg(long)]
    seconds: Option<u64>,
    /// Lives through this one history of the seed alone, and prints its script and its log
    #[arg(long)]
    only: Option<u64>,
    /// Prints the names of the guards
    #[cfg(feature = "mutants")]
    #[arg(long)]
    guards: bool,
    /// Switches this guard of the rules off; `all`: one after the other, each until the search has noticed
    #[cfg(feature = "mutants")]
    #[arg(long)]
    without: Option<String>,
    /// Counts for each guard the histories that would rightly be FENCED without it, and are not with it
    #[cfg(feature = "mutants")]
    #[arg(long)]
    price: bool,
    /// How many violations are looked for before the search ends, 1 to 1,000
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    violations: u64,
}

/// What all threads have found.
#[derive(Default)]
struct Found {
    lived: AtomicU64,
    reached: Mutex<BTreeMap<Reached, u64>>,
    violated: Mutex<Vec<(u64, String)>>,
    is_over: AtomicBool,
}

#[expect(
    clippy::disallowed_methods,
    reason = "without a seed every run is another one"
)]
fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seed = arguments.seed.unwrap_or_else(rand::random);
    if let Some(number) = arguments.only {
        tell(&History::of(seed, number));
        return ExitCode::SUCCESS;
    }
    #[cfg(feature = "mutants")]
    if arguments.guards {
        for guard in ringfence_core::Guard::ALL {
            println!("{}", guard.name());
        }
        return ExitCode::SUCCESS;
    }
    #[cfg(feature = "mutants")]
    if let Some(name) = &arguments.without {
        return mutants::run(name, &arguments, seed);
    }
    #[cfg(feature = "mutants")]
    if arguments.price {
        return price::run(&arguments, seed);
    }
    println!("searching {} histories with seed {seed}", arguments.histories);
    let found = look(&arguments, seed);
    report(&found.0, seed, found.1)
}

/// Searches, and tells what was found and when it began.
fn look(arguments: &Arguments, seed: u64) -> (Found, Instant) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let began = Instant::now();
    let until = arguments
        .seconds
        .map(|seconds| began + Duration::from_secs(seconds));
    let found = Found::default();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let found = &found;
            scope.spawn(move || search(found, arguments, seed, thread, threads, until));
        }
    });
    (found, began)
}

fn search(found: &Found, arguments: &Arguments, seed: u64, first: u64, step: u64, until: Option<Instant>) {
    let mut number = first;
    while number < arguments.histories && !found.is_over.load(Ordering::Relaxed) {
        if until.is_some_and(|until| Instant::now() >= until) {
            return;
        }
        let history = History::of(seed, number);
        let (ending, _) = live_through(&history, false);
        found.lived.fetch_add(1, Ordering::Relaxed);
        match ending {
            Ending::Well(reached) => {
                let mut all = found.reached.lock();
                for one in reached {
                    *all.entry(one).or_default() += 1;
                }
            }
            Ending::Violated(violation, _) => note(found, arguments, number, format!("{violation:?}")),
            Ending::Endless(why) => note(found, arguments, number, format!("Endless: {why}")),
        }
        number += step;
    }
}

fn note(found: &Found, arguments: &Arguments, number: u64, what: String) {
    let mut violated = found.violated.lock();
    violated.push((number, what));
    if violated.len() as u64 >= arguments.violations {
        found.is_over.store(true, Ordering::Relaxed);
    }
}

fn report(found: &Found, seed: u64, began: Instant) -> ExitCode {
    let lived = found.lived.load(Ordering::Relaxed);
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{lived} histories in {seconds:.1} s, {:.0} a second",
        lived as f64 / seconds
    );
    for (reached, count) in found.reached.lock().iter() {
        println!("{count:>10} reached {reached:?}");
    }
    let mut violated = found.violated.lock();
    violated.sort();
    for (number, what) in violated.iter() {
        println!("violation in history {number} of seed {seed}: {what}");
    }
    match violated.first() {
        Some((number, _)) => {
            tell(&shrink(&History::of(seed, *number)));
            ExitCode::FAILURE
        }
        None => {
            println!("no violation");
            ExitCode::SUCCESS
        }
    }
}

/// Prints a history with its log.
fn tell(history: &History) {
    println!("{}", history.setting.in_words());
    let (ending, world) = live_through(history, true);
    for line in &world.log {
        println!("{line}");
    }
    println!("{ending:?}");
}
