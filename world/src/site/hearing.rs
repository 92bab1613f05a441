//! Who hears the host.

use super::{Heard, Machine, Site};

impl Site {
    /// These sources, and no others, hear the host.
    pub fn watch_by<'a>(&mut self, sources: impl Iterator<Item = &'a str>) {
        self.links = sources.map(|name| (name.to_owned(), true)).collect();
    }

    /// Whether a source can hear the host.
    pub fn link(&mut self, source: &str, is_up: bool) {
        self.links.insert(source.to_owned(), is_up);
        self.look_around();
    }

    /// Whether a source hears the host now.
    #[must_use]
    pub fn is_heard_by(&self, source: &str) -> bool {
        self.machine == Machine::On && self.links.get(source).copied().unwrap_or(false)
    }

    /// What a source last heard of the host.
    #[must_use]
    pub fn heard_by(&self, source: &str) -> Option<Heard> {
        self.heard.get(source).copied()
    }

    /// A source begins anew and knows nothing of what it has heard.
    pub fn forget_heard(&mut self, source: &str) {
        self.heard.remove(source);
    }

    pub(super) fn hear(&mut self) {
        let heard = Heard {
            at: self.at,
            boot: self.boot,
            booted_at: self.booted_at,
        };
        if self.machine == Machine::On {
            let linked = self.links.iter().filter(|(_, is_up)| **is_up);
            self.heard.extend(linked.map(|(name, _)| (name.clone(), heard)));
        }
    }
}
