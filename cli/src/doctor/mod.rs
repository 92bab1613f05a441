//! Checks for whatever would keep a fence from being proven, before it is needed.
//!
//! Each check adds findings, and none ends the examination: if one part is away, the others are still checked.

mod answers;
mod broker;
mod database;
mod devices;
mod fence_configuration;
mod files;
mod hosts;
mod inside;
mod keystone;
mod names;
mod one_device;
mod platforms;
mod report;
mod verdict;

use ringfence_bus::{AmqpBus, Bus};

pub use devices::{Tell, Which};
use hosts::Site;
pub use report::{Finding, Report, Weight};
pub use verdict::Judged;
use verdict::Served;

use crate::config::Settings;

/// Checks everything that the settings name, and asks the devices if `which` is given.
pub async fn examine(settings: &Settings, which: Option<&Which>, tell: Tell<'_>) -> Report {
    let mut report = Report::default();
    files::look(settings, &mut report);
    keystone::look(settings, &mut report).await;
    let platforms = platforms::look(settings, &mut report).await;
    fence_configuration::look(settings, &mut report).await;
    let Some(db) = database::look(settings, &mut report).await else {
        return report;
    };
    let site = hosts::look(&db, &mut report).await;
    platforms::compare(settings, &db, &platforms, &mut report).await;
    platforms::try_drivers(&platforms, &site, &mut report).await;
    let mut silences = answers::look(settings, &db, &site, which, &mut report).await;
    let (bus, served) = reach(settings, &site, &mut report).await;
    if let (Some(which), Some(_)) = (which, &served) {
        let heard = devices::look(settings, &db, bus, &site, (which, tell), &mut report).await;
        heard.into_iter().for_each(|heard| heard.tell(&mut silences));
    } else if let Some(bus) = bus {
        bus.close().await;
    }
    // Without a broker it is not known what is served.
    if let Some(served) = served {
        site.judge(&served, &silences, &mut report);
    }
    db.close().await;
    report
}

/// The broker, if there is one, and what workers serve, if that is known.
async fn reach(settings: &Settings, site: &Site, report: &mut Report) -> (Option<AmqpBus>, Option<Served>) {
    if let Some(bus) = broker::connect(settings, report).await {
        let served = broker::look(&bus, site, report).await;
        return (Some(bus), Some(served));
    }
    let is_inside = settings.bus.url.is_none();
    (None, is_inside.then(|| inside::look(settings, site, report)))
}
