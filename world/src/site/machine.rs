//! The machine: boots, workloads, and its watchdog.

use chrono::TimeDelta;
use ringfence_core::{Resource, Timestamp};

use super::{Cause, Machine, Site};

impl Site {
    /// The kernel dies; the machine starts again by itself, or not.
    pub fn crash(&mut self, reboots: bool) {
        if !matches!(self.machine, Machine::On | Machine::Booting(_)) {
            return;
        }
        self.stop_workloads();
        if reboots {
            self.start(Cause::Itself);
        } else {
            self.machine = Machine::Crashed;
        }
    }

    /// The dump is written, or was given up: the machine starts again by itself. `false` if it writes none.
    pub fn start_again(&mut self) -> bool {
        let is_it = self.machine == Machine::Crashed;
        if is_it {
            self.start(Cause::Itself);
        }
        is_it
    }

    /// The machine stands still, or goes on.
    pub fn freeze(&mut self, frozen: bool) {
        match (self.machine, frozen) {
            (Machine::On, true) => self.machine = Machine::Frozen,
            (Machine::Frozen, false) => self.machine = Machine::On,
            _ => {}
        }
    }

    /// The watchdog strikes so many milliseconds before the segment counts on it.
    pub fn shorten_watchdog(&mut self, milliseconds: i64) {
        self.watchdog_early = TimeDelta::milliseconds(milliseconds);
    }

    /// A host's own watchdog counts from when it is alone, or from its boot. In a machine that stands still it stands still.
    pub(super) fn watchdog_strikes_at(&self) -> Option<Timestamp> {
        let timeout = TimeDelta::seconds(i64::from(self.watchdog_s?)) - self.watchdog_early;
        let since = self.alone_since.filter(|_| self.machine == Machine::On)?;
        self.running.then_some(since + timeout)
    }

    pub(super) fn look_around(&mut self) {
        let is_alone = self.links.values().all(|is_up| !is_up);
        self.alone_since = match (is_alone, self.alone_since) {
            (false, _) => None,
            (true, Some(since)) => Some(since),
            (true, None) => Some(self.at),
        };
        self.start_workloads();
    }

    /// Workloads start by themselves with every boot, unless its agent asks first.
    pub(super) fn start_workloads(&mut self) {
        if self.machine == Machine::On && !self.asks_first {
            self.running = true;
        }
    }

    /// Whether the agent of a host asks now whether it may start its workloads.
    #[must_use]
    pub fn asks(&self) -> bool {
        let is_idle = self.machine == Machine::On && !self.running;
        self.asks_first && is_idle && self.alone_since.is_none()
    }

    /// The agent was told that it may.
    pub fn may_start(&mut self) {
        self.running |= self.asks();
    }

    pub(super) fn stop_workloads(&mut self) {
        if self.running && !self.is_cut(Resource::Storage) {
            self.begin_landing();
        }
        if self.running && !self.is_cut(Resource::Network) {
            self.landing_elsewhere_until = self.lands_at();
        }
        self.running = false;
    }

    fn lands_at(&self) -> Option<Timestamp> {
        let at = self.at + TimeDelta::milliseconds(self.lands_ms);
        (self.lands_ms > 0).then_some(at)
    }

    pub(super) fn begin_landing(&mut self) {
        self.landing_until = self.landing_until.max(self.lands_at());
    }

    pub(super) fn start(&mut self, cause: Cause) {
        self.boot += 1;
        self.booted_at = self.at;
        // What starts again by itself goes on with what began before.
        if cause != Cause::Itself {
            self.cause = cause;
            self.begun_with = self.boot;
        }
        self.alone_since = None;
        self.machine = Machine::Booting(self.at + TimeDelta::milliseconds(self.boot_ms));
    }

    /// Workloads that start by themselves are on their way.
    pub(super) fn will_run(&self) -> bool {
        matches!(self.machine, Machine::Booting(_)) && !self.asks_first
    }

    /// A host that is said to be UP is: a story that says so has pressed its button.
    pub(crate) fn wake_up(&mut self) {
        if self.machine == Machine::Off && self.is_powered() {
            self.start(Cause::Stranger);
        }
        if matches!(self.machine, Machine::Booting(_)) {
            self.machine = Machine::On;
        }
        self.look_around();
    }
}
