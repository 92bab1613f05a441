//! What a person has done by hand, and says of it.

use ringfence_core::Timestamp;

use crate::{World, plans};

/// A person's word on its way. It says what is so when it is written.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// The generation that the person looked at.
    pub generation: u32,
    /// When it was written, by the clock of whom it was given to.
    pub said_at: Timestamp,
    /// Whether it was so then.
    pub is_true: bool,
}

impl Word {
    /// A person pulls the plugs and writes it down.
    ///
    /// What another one is doing to the power this moment would make the word untrue: then it has to be refused.
    pub fn written(world: &mut World) -> Self {
        world.site.plug(false);
        world.settle();
        Self {
            generation: world.state.host.generation.0,
            said_at: world.now,
            // What has yet to land is the segment's to wait for.
            is_true: !world.site.running,
        }
    }

    /// It reaches the engine.
    pub fn is_heard(self, world: &mut World) {
        let is_hearsay = world.is_hearsay;
        let said = world.confirm_as_of(self.said_at, self.generation, plans::admin("anna"), false);
        world.is_hearsay = is_hearsay || (said.is_ok() && !self.is_true);
    }
}

/// A person pulls the plugs and says so.
pub fn unplug_and_confirm(world: &mut World) {
    Word::written(world).is_heard(world);
}
