//! States with equal packed forms have one future.

use std::collections::HashMap;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use ringfence_modelcheck::{Action, Configuration, Model, State, all};
use stateright::Model as _;

/// Number of states to look at in each configuration.
const STATES: usize = 1_000;

/// A state, and the actions that led to it.
type Known = (State, Vec<Action>);

#[test]
fn states_with_equal_packed_forms_have_one_future() {
    let states = std::env::var("RINGFENCE_PACKED_STATES").ok();
    let states = states.and_then(|states| states.parse().ok()).unwrap_or(STATES);
    for configuration in all() {
        let name = configuration.name;
        let compared = walk(configuration, states);
        println!("{name}: {compared} pairs of equal states");
    }
}

/// Continues from any known state, and compares the states where two ways meet.
fn walk(configuration: Configuration, states: usize) -> usize {
    let name = configuration.name;
    let model = Model::new(configuration, None);
    let mut rng = SmallRng::seed_from_u64(7);
    let mut known: HashMap<Vec<u8>, Known> = HashMap::new();
    let start = model.start();
    let mut open: Vec<Vec<u8>> = vec![start.packed().to_vec()];
    known.insert(start.packed().to_vec(), (start, Vec::new()));
    let mut compared = 0;
    while known.len() < states && !open.is_empty() {
        let key = open.swap_remove(rng.random_range(0..open.len()));
        let (state, path) = known[&key].clone();
        for (action, next) in model.next_steps(&state) {
            let path = [&path[..], &[action]].concat();
            match known.get(next.packed()) {
                Some((other, way)) => {
                    compare(&model, &next, other, &format!("{name}: {path:?} and {way:?}"));
                    compared += 1;
                }
                None => {
                    open.push(next.packed().to_vec());
                    known.insert(next.packed().to_vec(), (next, path));
                }
            }
        }
    }
    compared
}

fn compare(model: &Model, one: &State, other: &State, ways: &str) {
    assert_eq!(one.life.wrong, other.life.wrong, "{ways}");
    let (ones, others) = (model.next_steps(one), model.next_steps(other));
    let acts = |steps: &[(Action, State)]| steps.iter().map(|(action, _)| *action).collect::<Vec<_>>();
    assert_eq!(acts(&ones), acts(&others), "{ways}");
    for ((action, next), (_, other)) in ones.iter().zip(&others) {
        assert!(next == other, "{action:?} has different results after {ways}");
        assert_eq!(next.life.wrong, other.life.wrong, "{action:?} after {ways}");
    }
}
