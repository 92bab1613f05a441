//! How often each kind of thing may happen in one history.

use std::str::FromStr;

use crate::ModelCheckError;

macro_rules! chances {
    ($($(#[doc = $what:literal])+ $name:ident),+ $(,)?) => {
        /// A kind of thing that may happen.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Chance { $($(#[doc = $what])+ $name),+ }

        impl Chance {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Its name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),+ }
            }
        }
    };
}

chances! {
    /// A person asks for a fence.
    Fence,
    /// A person asks for a rejoin.
    Rejoin,
    /// A person asks for an evacuation.
    Evacuate,
    /// A person cancels what is under way.
    Cancel,
    /// A person has tried again what waits.
    Retry,
    /// A person pulls the plugs, and says that the host is fenced.
    Say,
    /// A person says that the host is fenced, and has done nothing.
    Lie,
    /// A person says so of the generation before.
    SayLate,
    /// A person pulls the plugs, and writes down that the host is fenced.
    Write,
    /// A person puts the plugs in.
    PlugIn,
    /// A person releases something by hand, and says so.
    Release,
    /// A source hears the host no more.
    Cut,
    /// A source hears the host again.
    Heal,
    /// A source says what it sees, and is heard at once.
    Tell,
    /// A source says what it sees, and is heard later.
    Post,
    /// A result arrives, and will arrive once more; or what is told of a crash kernel.
    Double,
    /// Time passes until something changes.
    Step,
    /// Time passes for a moment.
    Pause,
    /// Time passes while no engine is there.
    Unseen,
    /// The kernel dies.
    Die,
    /// The kernel dies, and the host starts again.
    Reboot,
    /// The machine starts again after its dump.
    StartAgain,
    /// The crash kernel sends a message.
    Send,
    /// Another party switches the host on.
    Stranger,
    /// Another engine decides from here on, whose clock is ahead.
    Engine,
    /// The clock is set.
    Clock,
    /// The cloud does not answer any more, or answers again.
    Cloud,
    /// The database is gone, but for the host's record.
    Forget,
    /// Another process takes the records over.
    TakeOver,
    /// The process before does something.
    Former,
}

/// How often each may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chances([u8; Chance::ALL.len()]);

impl Chances {
    /// Nothing happens but for these.
    #[must_use]
    pub fn of(some: &[(Chance, u8)]) -> Self {
        let mut all = Self([0; Chance::ALL.len()]);
        for (chance, times) in some {
            all.0[*chance as usize] = *times;
        }
        all
    }

    /// How often it may happen.
    #[must_use]
    pub fn left(&self, chance: Chance) -> u8 {
        self.0[chance as usize]
    }

    /// It may happen so often.
    pub fn set(&mut self, chance: Chance, times: u8) {
        self.0[chance as usize] = times;
    }

    /// It happens once. `false` if it may not.
    pub fn take(&mut self, chance: Chance) -> bool {
        let left = &mut self.0[chance as usize];
        let may = *left > 0;
        *left = left.saturating_sub(1);
        may
    }

    /// All of them, in order.
    #[must_use]
    pub fn all(&self) -> &[u8] {
        &self.0
    }

    /// Changes one of them as `KIND=NUMBER` says.
    ///
    /// # Errors
    /// It says no such thing.
    pub fn change(&mut self, words: &str) -> Result<(), ModelCheckError> {
        let wrong = || ModelCheckError::Chance(words.to_owned());
        let (name, times) = words.split_once('=').ok_or_else(wrong)?;
        let chance = Chance::ALL.iter().find(|chance| chance.name() == name);
        self.set(
            *chance.ok_or_else(wrong)?,
            u8::from_str(times).map_err(|_| wrong())?,
        );
        Ok(())
    }
}
