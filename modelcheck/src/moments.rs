//! The moments to which time moves.

use chrono::TimeDelta;
use ringfence_core::Timestamp;

use crate::Life;

impl Life {
    /// How long it is until something changes by itself, or an engine has something to do: more than nothing.
    pub(crate) fn until_something(&self) -> Option<TimeDelta> {
        let world = &self.world;
        let engine = world.wake_at.map(|at| at - world.now);
        let physical = |at: Timestamp| at - world.real;
        let site = world.site.next().map(physical);
        let ears = self.ears.iter().filter_map(|ear| {
            let heard = world.site.heard_by(&ear.source.name)?;
            Some(physical(heard.at) + TimeDelta::milliseconds(ear.source.patience_ms))
        });
        let all = [engine, site].into_iter().flatten().chain(ears);
        all.filter(|after| *after > TimeDelta::zero()).min()
    }

    /// Whether an engine has something to do now.
    pub(crate) fn is_due(&self) -> bool {
        self.world.wake_at.is_some_and(|at| at <= self.world.now)
    }

    pub(crate) fn advance(&mut self, by: TimeDelta) {
        self.world.now += by;
        self.world.real += by;
        self.world.settle();
    }
}
