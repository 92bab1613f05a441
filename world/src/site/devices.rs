//! What devices are told, what they show, and what people do to them.

use ringfence_core::{FencingKind, ObservedState, Outcome, Resource, Timestamp};

use super::{Cause, Machine, Site};
use crate::feed::{Feed, Manner};

impl Site {
    /// How the device of a method behaves.
    #[must_use]
    pub fn manner(&self, method: &str) -> Manner {
        self.manners.get(method).copied().unwrap_or_default()
    }

    /// The names of all devices.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        self.feeds.keys().map(String::as_str)
    }

    /// A worker commands the device of `method`.
    pub fn command(&mut self, kind: FencingKind, method: &str) {
        let manner = self.manner(method);
        let now = self.at;
        let open = kind.releases();
        if let Some(feed) = self.feeds.get_mut(method) {
            feed.command(open, manner, now);
        }
        if open {
            self.press_button(kind, Cause::Ringfence);
        }
        self.settle(Cause::Ringfence);
    }

    /// A machine that has switched itself off starts when its power is switched on, even if it was never off.
    fn press_button(&mut self, kind: FencingKind, cause: Cause) {
        if kind == FencingKind::PowerOn && self.machine == Machine::Off && self.is_powered() {
            self.start(cause);
        }
    }

    /// What a worker reads after it has acted.
    #[must_use]
    pub fn report(&self, kind: FencingKind, method: &str) -> (Outcome, Option<ObservedState>) {
        let lets_through = self.feeds.get(method).is_none_or(Feed::shows);
        // A machine that has switched itself off reads as off, as far as its own controller goes.
        let is_on = lets_through && (self.machine != Machine::Off || kind == FencingKind::PowerOff);
        // An export shows as closed once what it had accepted has landed, and not before.
        let is_closing = kind == FencingKind::StorageFence && self.landing_until.is_some();
        let shown = match kind {
            _ if is_closing => ObservedState::Unfenced,
            FencingKind::PowerOff | FencingKind::PowerOn if is_on => ObservedState::On,
            FencingKind::PowerOff | FencingKind::PowerOn => ObservedState::Off,
            _ if lets_through => ObservedState::Unfenced,
            _ => ObservedState::Fenced,
        };
        match self.manner(method) {
            Manner::OnPaper | Manner::Ghost => (Outcome::Confirmed, Some(kind.wanted_state())),
            Manner::Silent => (Outcome::Unknown, None),
            Manner::Refuses => (Outcome::Refused, None),
            Manner::Honest | Manner::Lies | Manner::Slow(_) | Manner::Stale(_)
                if shown == kind.wanted_state() =>
            {
                (Outcome::Confirmed, Some(shown))
            }
            Manner::Honest | Manner::Lies | Manner::Slow(_) | Manner::Stale(_) => {
                (Outcome::Unknown, Some(shown))
            }
        }
    }

    /// A person puts one feed back by hand.
    pub fn reconnect(&mut self, method: &str) {
        if let Some(feed) = self.feeds.get_mut(method) {
            feed.open_by_hand();
        }
        self.settle(Cause::Stranger);
    }

    /// A person switches every feed of the power on without Ringfence.
    pub fn restore_power(&mut self) {
        let paths = self.paths.iter().filter(|path| path.resource == Resource::Power);
        let names: Vec<String> = paths
            .flat_map(|path| path.levels.iter().flatten().cloned())
            .collect();
        for name in names {
            if let Some(feed) = self.feeds.get_mut(&name) {
                feed.open_by_hand();
            }
        }
        self.plug_in();
        self.meddled_at = Some(self.at);
        self.press_button(FencingKind::PowerOn, Cause::Stranger);
        self.settle(Cause::Stranger);
    }

    /// A person pulls the plugs, or puts them in.
    pub fn plug(&mut self, plugged: bool) {
        if plugged {
            self.plug_in();
            self.meddled_at = Some(self.at);
        } else {
            self.plugged = false;
            self.plugged_by_hand = false;
        }
        self.settle(Cause::Stranger);
    }

    fn plug_in(&mut self) {
        self.plugged_by_hand |= !self.plugged;
        self.plugged = true;
    }

    /// When a person last switched something on without which the host would have no power; `None` if it has its power without
    /// that.
    #[must_use]
    pub fn meddled_at(&self) -> Option<Timestamp> {
        let by_hand = |name: &String| {
            self.feeds
                .get(name)
                .is_some_and(|feed| !feed.open || feed.by_hand)
        };
        let would_be_off = self.plugged_by_hand || self.is_cut_by(Resource::Power, by_hand);
        self.meddled_at.filter(|_| would_be_off)
    }

    /// Whether the machine has power.
    #[must_use]
    pub fn is_powered(&self) -> bool {
        self.plugged && !self.is_cut(Resource::Power)
    }

    /// Every path of the resource has a level that lets nothing through.
    #[must_use]
    pub fn is_cut(&self, resource: Resource) -> bool {
        self.is_cut_by(resource, |name| {
            self.feeds.get(name).is_some_and(|feed| !feed.open)
        })
    }

    fn is_cut_by(&self, resource: Resource, is_off: impl Fn(&String) -> bool) -> bool {
        let mut paths = self
            .paths
            .iter()
            .filter(|path| path.resource == resource)
            .peekable();
        paths.peek().is_some()
            && paths.all(|path| {
                let mut levels = path.levels.iter();
                levels.any(|level| !level.is_empty() && level.iter().all(&is_off))
            })
    }

    /// The devices by which a worker has taken storage or network from the host.
    pub fn taken(&self) -> impl Iterator<Item = &str> {
        let paths = self.paths.iter().filter(|path| path.resource != Resource::Power);
        let names = paths.flat_map(|path| path.levels.iter().flatten());
        let is_closed = |name: &&String| self.feeds.get(*name).is_some_and(|feed| !feed.open);
        names.filter(is_closed).map(String::as_str)
    }
}
