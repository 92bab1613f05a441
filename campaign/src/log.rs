//! The log of a campaign: a file with everything, and the last lines of each host and of the faults in memory.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};

use crate::error::CampaignError;

/// Number of lines of a host, and of the faults, in the report of a violation.
const AT_HAND: usize = 60;

/// The log of a campaign.
pub struct Log {
    begun: Instant,
    inner: Mutex<Inner>,
}

struct Inner {
    file: File,
    hosts: BTreeMap<String, VecDeque<String>>,
    faults: VecDeque<String>,
}

impl Log {
    /// Makes an empty log in a folder.
    pub fn new(folder: &Path) -> Result<Self, CampaignError> {
        let path = folder.join("campaign.log");
        let file = File::create(&path).map_err(CampaignError::system(format!("write {}", path.display())))?;
        Ok(Self {
            begun: Instant::now(),
            inner: Mutex::new(Inner {
                file,
                hosts: BTreeMap::new(),
                faults: VecDeque::new(),
            }),
        })
    }

    /// Logs something about one host: a request with its answer, a report, or an action.
    pub fn host(&self, host: &str, text: &str) {
        let line = self.line(text);
        let mut inner = self.lock();
        inner.write(&format!("{host} {line}"));
        push(inner.hosts.entry(host.to_owned()).or_default(), line);
    }

    /// Logs a fault.
    pub fn fault(&self, text: &str) {
        let line = self.line(text);
        let mut inner = self.lock();
        inner.write(&format!("fault {line}"));
        push(&mut inner.faults, line);
    }

    /// Logs anything else.
    pub fn note(&self, text: &str) {
        let line = self.line(text);
        self.lock().write(&line);
    }

    /// The last faults.
    pub fn last_faults(&self) -> Vec<String> {
        self.lock().faults.iter().cloned().collect()
    }

    /// The last lines about a host.
    pub fn last_of(&self, host: &str) -> Vec<String> {
        let inner = self.lock();
        inner.hosts.get(host).into_iter().flatten().cloned().collect()
    }

    fn line(&self, text: &str) -> String {
        format!("{:9.3} {text}", self.begun.elapsed().as_secs_f64())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl Inner {
    fn write(&mut self, line: &str) {
        // A campaign goes on if its log cannot be written.
        let _ = writeln!(self.file, "{line}");
    }
}

fn push(lines: &mut VecDeque<String>, line: String) {
    if lines.len() >= AT_HAND {
        lines.pop_front();
    }
    lines.push_back(line);
}
