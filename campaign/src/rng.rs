//! Random numbers that a seed repeats.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Random numbers for one purpose. Numbers of other purposes do not depend on how many are drawn.
pub struct Dice(SmallRng);

impl Dice {
    /// The random numbers of a purpose.
    pub fn of(seed: u64, purpose: u64) -> Self {
        Self(SmallRng::seed_from_u64(
            seed ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        ))
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0.random_range(low..=high)
    }

    /// `true` with a probability of `percent` in a hundred.
    pub fn one_of(&mut self, percent: u64) -> bool {
        self.between(1, 100) <= percent
    }

    /// One of several, which must not be empty.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.0.random_range(0..of.len())]
    }

    /// One of several, with a probability in proportion to its weight.
    pub fn weighted<T: Copy>(&mut self, of: &[(u64, T)]) -> Option<T> {
        let all: u64 = of.iter().map(|(weight, _)| weight).sum();
        let mut drawn = self.between(1, all.max(1));
        for (weight, what) in of {
            if drawn <= *weight {
                return Some(*what);
            }
            drawn -= weight;
        }
        None
    }
}
