//! One device's way to the host: whether it lets power, data or packets through, and how it behaves when it is told to change.

use chrono::TimeDelta;
use ringfence_core::Timestamp;

/// How a device behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// Does at once what it is told, and shows what is so.
    #[default]
    Honest,
    /// Says ok, does nothing, and shows what is so.
    Lies,
    /// Says ok, does nothing, and shows what was wanted: no reading of it proves anything.
    Ghost,
    /// Writes down what is wanted, and nothing comes of it; a reading shows as much.
    OnPaper,
    /// Never answers, and does nothing.
    Silent,
    /// Says no.
    Refuses,
    /// Does so many milliseconds later what it is told, whether its client has waited or not, and shows what is so.
    Slow(u32),
    /// Does at once what it is told, and shows the old state for so many milliseconds.
    Stale(u32),
}

/// One device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feed {
    /// Whether it lets anything through.
    pub open: bool,
    /// Whether a person has opened it.
    pub by_hand: bool,
    /// What it will do, and when.
    pub pending: Vec<(Timestamp, bool)>,
    /// What it shows until when, where that is not what is so.
    pub old: Option<(Timestamp, bool)>,
}

impl Default for Feed {
    /// One that lets everything through.
    fn default() -> Self {
        Self {
            open: true,
            by_hand: false,
            pending: Vec::new(),
            old: None,
        }
    }
}

impl Feed {
    /// It is told to change.
    pub fn command(&mut self, open: bool, manner: Manner, now: Timestamp) {
        match manner {
            Manner::Honest => self.become_so(open),
            Manner::OnPaper if open => self.become_so(open),
            Manner::Slow(delay_ms) => self.pending.push((now + ms(delay_ms), open)),
            Manner::Stale(delay_ms) => {
                let before = self.open;
                self.become_so(open);
                self.old = Some((now + ms(delay_ms), before));
            }
            Manner::Lies | Manner::Ghost | Manner::OnPaper | Manner::Silent | Manner::Refuses => {}
        }
    }

    fn become_so(&mut self, open: bool) {
        self.open = open;
        self.old = None;
        self.by_hand &= open;
    }

    /// A person opens it by hand.
    pub fn open_by_hand(&mut self) {
        self.by_hand |= !self.open;
        self.open = true;
        self.old = None;
    }

    /// What it shows.
    pub fn shows(&self) -> bool {
        self.old.map_or(self.open, |(_, open)| open)
    }

    /// When it will change by itself.
    pub fn next(&self) -> Option<Timestamp> {
        let pending = self.pending.iter().map(|(at, _)| *at);
        pending.chain(self.old.map(|(at, _)| at)).min()
    }

    /// Does what is due. `true` if it has changed.
    pub fn pass(&mut self, now: Timestamp) -> bool {
        if self.old.is_some_and(|(at, _)| at <= now) {
            self.old = None;
        }
        let before = self.open;
        self.pending.sort_by_key(|(at, _)| *at);
        let due: Vec<_> = self.pending.extract_if(.., |(at, _)| *at <= now).collect();
        for (_, open) in due {
            self.become_so(open);
        }
        self.open != before
    }
}

fn ms(milliseconds: u32) -> TimeDelta {
    TimeDelta::milliseconds(i64::from(milliseconds))
}
