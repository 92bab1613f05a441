//! State that all parts of a campaign share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use crate::api::Api;
use crate::clock::SiteClock;
use crate::log::Log;
use crate::options::Options;
use crate::plant::Plant;
use crate::report::{Figures, Violation};
use crate::script::{Astray, host_name};
use crate::truth::Truth;

/// Number of violations that are reported; later ones mostly follow from the first.
const MAX_VIOLATIONS: usize = 5;

/// A running campaign.
pub struct Field {
    pub options: Options,
    pub truth: Truth,
    pub log: Arc<Log>,
    pub clock: SiteClock,
    pub plant: Arc<Plant>,
    pub api: Api,
    pub figures: Arc<Figures>,
    /// Hosts whose reports have a fault, and until when.
    pub astray: Mutex<BTreeMap<String, (Astray, Instant)>>,
    violations: Mutex<Vec<Violation>>,
    /// In the end phase no faults begin, and people request nothing new.
    is_calm: AtomicBool,
}

impl Field {
    pub fn new(options: Options, truth: Truth, log: Arc<Log>, clock: SiteClock, plant: Arc<Plant>) -> Self {
        Self {
            api: Api::new(plant.clients.clone()),
            options,
            truth,
            log,
            clock,
            plant,
            figures: Arc::default(),
            astray: Mutex::default(),
            violations: Mutex::default(),
            is_calm: AtomicBool::new(false),
        }
    }

    /// The names of all hosts.
    pub fn hosts(&self) -> impl Iterator<Item = String> + use<> {
        (0..self.options.hosts).map(host_name)
    }

    pub fn is_calm(&self) -> bool {
        self.is_calm.load(Ordering::Relaxed)
    }

    pub fn calm(&self) {
        self.is_calm.store(true, Ordering::Relaxed);
    }

    /// Records a violation.
    pub fn violated(&self, what: &str, host: &str, detail: String) {
        self.log.host(host, &format!("VIOLATION {what}: {detail}"));
        let mut violations = self.violations.lock();
        let is_known = violations
            .iter()
            .any(|known| known.what == what && known.host == host);
        if violations.len() < MAX_VIOLATIONS && !is_known {
            violations.push(Violation {
                what: what.to_owned(),
                host: host.to_owned(),
                detail,
                faults: self.log.last_faults(),
                of_host: self.log.last_of(host),
            });
        }
    }

    pub fn is_violated(&self) -> bool {
        !self.violations.lock().is_empty()
    }

    /// Returns the violations.
    pub fn violations(&self) -> Vec<Violation> {
        std::mem::take(&mut *self.violations.lock())
    }

    /// The present fault of a host's reports.
    pub fn astray(&self, host: &str) -> Option<Astray> {
        let astray = self.astray.lock();
        let (how, until) = astray.get(host)?;
        (*until > Instant::now()).then_some(*how)
    }
}
