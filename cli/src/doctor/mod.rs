//! What would keep a fence from being proven, looked for before it is needed.
//!
//! Each look adds findings and none ends the examination: where one part is away, the others are still looked at.

mod answers;
mod broker;
mod database;
mod devices;
mod files;
mod hosts;
mod inside;
mod keystone;
mod one_device;
mod platforms;

use ringfence_bus::Bus;

pub use devices::{Tell, Which};

use crate::config::Settings;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be.
    Good,
    /// Works, and somebody should know.
    Warning,
    /// Has to be mended: something cannot be fenced, or not without a person.
    Failure,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it belongs to.
    pub part: &'static str,
    /// How bad it is.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

/// All that was found, in the order in which it was looked at.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The findings.
    pub findings: Vec<Finding>,
}

impl Report {
    fn good(&mut self, part: &'static str, found: impl Into<String>) {
        self.add(part, Verdict::Good, found.into(), None);
    }

    fn warning(&mut self, part: &'static str, found: impl Into<String>, remedy: impl Into<String>) {
        self.add(part, Verdict::Warning, found.into(), Some(remedy.into()));
    }

    fn failure(&mut self, part: &'static str, found: impl Into<String>, remedy: impl Into<String>) {
        self.add(part, Verdict::Failure, found.into(), Some(remedy.into()));
    }

    fn add(&mut self, part: &'static str, verdict: Verdict, found: String, remedy: Option<String>) {
        self.findings.push(Finding {
            part,
            verdict,
            found,
            remedy,
        });
    }

    /// How many findings have to be mended.
    #[must_use]
    pub fn failures(&self) -> usize {
        let failed = self.findings.iter().filter(|f| f.verdict == Verdict::Failure);
        failed.count()
    }
}

/// Looks at everything that the settings name, and asks the devices if some are named.
pub async fn examine(settings: &Settings, which: Option<&Which>, tell: Tell<'_>) -> Report {
    let mut report = Report::default();
    files::look(settings, &mut report);
    keystone::look(settings, &mut report).await;
    let platforms = platforms::look(settings, &mut report).await;
    let Some(db) = database::look(settings, &mut report).await else {
        return report;
    };
    let site = hosts::look(&db, &mut report).await;
    platforms::compare(settings, &db, &platforms, &mut report).await;
    platforms::try_drivers(&platforms, &site, &mut report).await;
    answers::look(settings, &db, &site, which, &mut report).await;
    if let Some(bus) = broker::connect(settings, &mut report).await {
        let served = broker::look(&bus, &site, &mut report).await;
        site.judge(&served, &mut report);
        if let Some(which) = which {
            devices::look(settings, &db, Some(bus), &site, (which, tell), &mut report).await;
        } else {
            bus.close().await;
        }
    } else if settings.bus.url.is_none() {
        let served = inside::look(settings, &site, &mut report);
        site.judge(&served, &mut report);
        if let Some(which) = which {
            devices::look(settings, &db, None, &site, (which, tell), &mut report).await;
        }
    }
    db.close().await;
    report
}
