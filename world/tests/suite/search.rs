//! A part of the search, with a new seed in each run, which is printed.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use ringfence_world::search::{Ending, History, live_through, shrink};

/// Number of histories in one run of the tests.
const HISTORIES: u64 = 20_000;

#[test]
#[expect(clippy::disallowed_methods, reason = "each run searches new histories")]
fn no_random_history_opens_a_gate_over_a_host_that_runs() {
    let seed: u64 = std::env::var("RINGFENCE_SEARCH_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(rand::random);
    println!("seed {seed}");
    for number in 0..HISTORIES {
        let history = History::of(seed, number);
        let (ending, _) = live_through(&history, false);
        if !matches!(ending, Ending::Well(_)) {
            let short = shrink(&history);
            let (ending, world) = live_through(&short, true);
            panic!(
                "history {number} of seed {seed}: {ending:?}\n{}\n{}",
                short.setting.in_words(),
                world.log.join("\n")
            );
        }
    }
}

#[test]
fn a_seed_and_a_number_give_one_history() {
    let mut rng = SmallRng::seed_from_u64(5);
    let (seed, number) = (rng.random(), rng.random_range(0..1_000));
    let one = format!("{:?}", History::of(seed, number));
    assert_eq!(one, format!("{:?}", History::of(seed, number)));
}
