//! Searching a configuration.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use stateright::{Checker, Model as _};

use crate::{Action, Configuration, Goal, Life, Model, State, Wrong};

/// In which order states are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Down first: takes least memory.
    #[default]
    Depth,
    /// The nearest first: gives the shortest trace.
    Breadth,
}

/// How far a search goes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// In which order.
    pub order: Order,
    /// With so many threads.
    pub threads: usize,
    /// Seconds after which nothing more is looked at.
    pub seconds: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            order: Order::Depth,
            threads: 1,
            seconds: None,
        }
    }
}

/// What a search has found.
#[derive(Clone, Debug)]
pub struct Found {
    /// States, no two of which are one.
    pub states: u64,
    /// Ways into them.
    pub steps: u64,
    /// The longest way.
    pub depth: usize,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// What the rules know, in how many states.
    pub known: usize,
    /// Whether every state was looked at.
    pub is_exhausted: bool,
    /// How many states reached each goal.
    pub goals: Vec<(Goal, u64)>,
    /// What must never be, and the way to it.
    pub wrong: Option<(Wrong, Vec<Action>)>,
}

impl Found {
    /// Which goals of a configuration no state has reached.
    #[must_use]
    pub fn missed(&self, configuration: &Configuration) -> Vec<Goal> {
        let count = |goal: &Goal| {
            self.goals
                .iter()
                .find(|(known, _)| known == goal)
                .map_or(0, |(_, count)| *count)
        };
        configuration
            .goals
            .iter()
            .copied()
            .filter(|goal| count(goal) == 0)
            .collect()
    }
}

/// Searches a configuration.
#[must_use]
pub fn run(configuration: &Configuration, limits: Limits) -> Found {
    let began = Instant::now();
    let until = limits.seconds.map(|seconds| began + Duration::from_secs(seconds));
    let model = Model::new(configuration.clone(), until);
    let shared = Arc::clone(&model.shared);
    let builder = model.checker().threads(limits.threads);
    let (steps, depth, path) = match limits.order {
        Order::Depth => finish(builder.spawn_dfs()),
        Order::Breadth => finish(builder.spawn_bfs()),
    };
    let wrong = path.map(|path| {
        let last = replay(configuration, &path);
        // A way that ends in nothing wrong when it is gone again would be a fault of the search itself.
        let wrong = Model::new(configuration.clone(), None).wrong(&State::new(last));
        (wrong.unwrap_or(Wrong::Forgotten("it was wrong once only")), path)
    });
    Found {
        states: shared.looked_at.load(Ordering::Relaxed),
        steps,
        depth,
        seconds: began.elapsed().as_secs_f64(),
        known: shared.ends.count(),
        is_exhausted: wrong.is_none() && !shared.is_cut_short.load(Ordering::Relaxed),
        goals: Goal::ALL
            .iter()
            .map(|goal| (*goal, shared.counts.of(*goal)))
            .collect(),
        wrong,
    }
}

fn finish(checker: impl Checker<Model>) -> (u64, usize, Option<Vec<Action>>) {
    let checker = checker.join();
    let path = checker.discoveries().into_values().next();
    let steps = u64::try_from(checker.state_count()).unwrap_or(u64::MAX);
    (
        steps,
        checker.max_depth(),
        path.map(stateright::Path::into_actions),
    )
}

/// Goes a way from the beginning.
fn replay(configuration: &Configuration, path: &[Action]) -> Life {
    let mut life = Life::new(&Arc::new(configuration.clone()));
    for action in path {
        life.happen(*action);
    }
    life
}

/// A way in words: what happens, and what the rules make of it.
#[must_use]
pub fn trace(configuration: &Configuration, path: &[Action]) -> Vec<String> {
    let mut life = Life::new(&Arc::new(configuration.clone()));
    life.world.records = true;
    let begun = life.world.real;
    for action in path {
        let seconds = (life.world.real - begun).num_milliseconds();
        let line = format!("{}.{} > {action:?}", seconds / 1_000, seconds % 1_000 / 100);
        life.world.log.push(line);
        life.happen(*action);
    }
    life.world.log
}
