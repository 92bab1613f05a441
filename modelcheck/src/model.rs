//! A configuration as `stateright` wants it.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use stateright::Property;

use crate::ends::Ends;
use crate::pack::pack;
use crate::{Action, Configuration, Goal, Life, Wrong};

/// A state, and what matters of it.
#[derive(Clone, Debug)]
pub struct State {
    /// As it is.
    pub life: Box<Life>,
    packed: Box<[u8]>,
}

impl State {
    /// Packs what matters of it.
    #[must_use]
    pub fn new(life: Life) -> Self {
        Self {
            packed: pack(&life).into(),
            life: Box::new(life),
        }
    }

    /// What matters of it.
    #[must_use]
    pub fn packed(&self) -> &[u8] {
        &self.packed
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.packed == other.packed
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.packed.hash(hasher);
    }
}

/// How many states reached each goal.
#[derive(Debug, Default)]
pub(crate) struct Counts([AtomicU64; Goal::ALL.len()]);

impl Counts {
    fn note(&self, life: &Life) {
        for (count, goal) in self.0.iter().zip(Goal::ALL) {
            if goal.is_reached(life) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    pub fn of(&self, goal: Goal) -> u64 {
        self.0[goal as usize].load(Ordering::Relaxed)
    }
}

/// All that threads share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub counts: Counts,
    pub ends: Ends,
    pub is_cut_short: AtomicBool,
    pub looked_at: AtomicU64,
}

/// A configuration, and what was found out about it.
pub struct Model {
    configuration: Arc<Configuration>,
    pub(crate) shared: Arc<Shared>,
    until: Option<Instant>,
}

impl Model {
    /// One that looks at states until then.
    #[must_use]
    pub fn new(configuration: Configuration, until: Option<Instant>) -> Self {
        Self {
            configuration: Arc::new(configuration),
            shared: Arc::default(),
            until,
        }
    }

    /// How it begins.
    #[must_use]
    pub fn start(&self) -> State {
        State::new(Life::new(&self.configuration))
    }

    /// What must never be and is so of a state.
    #[must_use]
    pub fn wrong(&self, state: &State) -> Option<Wrong> {
        let wrong = state.life.wrong.clone();
        wrong.or_else(|| self.shared.ends.check(&state.life))
    }

    /// Looks at a state that was not seen before. `false` if it must never be.
    fn look(&self, state: &State) -> bool {
        self.shared.looked_at.fetch_add(1, Ordering::Relaxed);
        self.shared.counts.note(&state.life);
        self.wrong(state).is_none()
    }

    fn is_over(&self) -> bool {
        let is_over = self.until.is_some_and(|until| Instant::now() >= until);
        if is_over {
            self.shared.is_cut_short.store(true, Ordering::Relaxed);
        }
        is_over
    }
}

impl stateright::Model for Model {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![self.start()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        // Nothing happens after what must never be, or when the time is up.
        if state.life.wrong.is_none() && !self.is_over() {
            state.life.actions(actions);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut life = (*state.life).clone();
        life.happen(action).then(|| State::new(life))
    }

    /// One property for everything, since `stateright` asks it once of each state that is new.
    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("nothing that must never be", Self::look)]
    }
}
