//! Whether the devices answer: each method is asked for its state, through a worker.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use ringfence_bus::AmqpBus;
use ringfence_core::ObservedState;
use ringfence_db::Database;

use super::Report;
use super::hosts::Site;
use crate::config::Settings;
use crate::error::error_chain;
use crate::services::parts;

const PART: &str = "devices";
/// Devices that are asked at the same time.
const AT_ONCE: usize = 8;

pub(super) async fn look(settings: &Settings, db: &Database, bus: AmqpBus, site: &Site, report: &mut Report) {
    let keys = match parts::keys(settings) {
        Ok(keys) => keys,
        Err(error) => return report.failure(PART, error_chain(&error), "mend bus.keys_file"),
    };
    let engine = match parts::engine("doctor", settings, db.clone(), Arc::new(bus), keys).await {
        Ok(engine) => engine,
        Err(error) => return report.failure(PART, error_chain(&error), "mend what is above first"),
    };
    let answers = stream::iter(site.methods.keys())
        .map(|method| {
            let (engine, host) = (engine.clone(), site.host_with(method));
            async move { (method, engine.check_method(method, host).await) }
        })
        .buffered(AT_ONCE);
    let mut answers = std::pin::pin!(answers);
    while let Some((method, answer)) = answers.next().await {
        match answer {
            Ok(check) if check.observation.state == ObservedState::Unknown => report.failure(
                PART,
                format!("{method}: its state cannot be told: {}", check.observation.detail),
                "look at the device",
            ),
            Ok(check) => report.good(
                PART,
                format!(
                    "{method}: {} after {} ms",
                    check.observation.state.as_str(),
                    check.took_ms
                ),
            ),
            Err(error) => report.failure(
                PART,
                format!("{method}: {}", error_chain(&error)),
                "look at the device, its address and its credentials",
            ),
        }
    }
}
