//! What queues are called on the broker.

use std::sync::Arc;

use crate::{DEAD_LETTERS, Queue};

/// What every name begins with unless the configuration says otherwise.
pub(super) const DEFAULT_PREFIX: &str = "ringfence";

/// Keeps the queues of several installations on one virtual host apart.
#[derive(Clone, Debug)]
pub(super) struct Names(Arc<str>);

impl Names {
    pub fn new(prefix: &str) -> Self {
        Self(prefix.into())
    }

    pub fn queue(&self, queue: &Queue) -> String {
        self.with_prefix(&queue.to_string())
    }

    pub fn dead_letters(&self) -> String {
        self.with_prefix(DEAD_LETTERS)
    }

    fn with_prefix(&self, name: &str) -> String {
        let rest = name.strip_prefix(DEFAULT_PREFIX).unwrap_or(name);
        format!("{}{rest}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_prefix_takes_the_place_of_ours() {
        assert_eq!(
            Names::new(DEFAULT_PREFIX).queue(&Queue::Claims),
            "ringfence.claims"
        );
        assert_eq!(Names::new("blue").queue(&Queue::Claims), "blue.claims");
        assert_eq!(Names::new("blue").dead_letters(), "blue.dead-letters");
    }
}
