//! A monitor, which reports the hosts again and again, and late, twice or not at all as a fault.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringfence_core::FailureState;
use ringfence_simulators::HostView;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::field::Field;
use crate::report::count;
use crate::script::Astray;

/// Time between two looks at the hosts.
const LOOK_EVERY: Duration = Duration::from_millis(150);
/// The greatest age of a host's last report.
const REPEAT_EVERY: Duration = Duration::from_millis(1_500);
/// The delay of a late report.
const LATE: Duration = Duration::from_millis(2_500);

/// Reports until it is dropped.
pub async fn watch(field: Arc<Field>) {
    let mut reported: BTreeMap<String, (FailureState, u64, Instant)> = BTreeMap::new();
    loop {
        for host in field.truth.observe() {
            let name = host.seen.name.clone();
            let news = (host.seen.failure_state, host.boot);
            let known = reported.get(&name);
            let is_due =
                known.is_none_or(|(state, boot, at)| (*state, *boot) != news || at.elapsed() >= REPEAT_EVERY);
            if is_due {
                reported.insert(name, (news.0, news.1, Instant::now()));
                tokio::spawn(tell(Arc::clone(&field), host));
            }
        }
        sleep(LOOK_EVERY).await;
    }
}

async fn tell(field: Arc<Field>, host: HostView) {
    let report = report(&field, &host);
    let name = host.seen.name.clone();
    match field.astray(&name) {
        Some(Astray::Lost) => {}
        Some(Astray::Late) => {
            sleep(LATE).await;
            send(&field, &host, &report).await;
        }
        Some(Astray::Doubled) => {
            send(&field, &host, &report).await;
            sleep(LATE / 2).await;
            send(&field, &host, &report).await;
        }
        None => send(&field, &host, &report).await,
    }
}

fn report(field: &Field, host: &HostView) -> Value {
    let state = match host.seen.failure_state {
        FailureState::Up => "UP",
        FailureState::Unreachable => "UNREACHABLE",
        FailureState::Unknown => "UNKNOWN",
    };
    json!({
        "failure_state": state,
        "source": "campaign",
        "observed_at": field.clock.now(),
        "boot_id": host.seen.boot_id,
    })
}

async fn send(field: &Field, host: &HostView, report: &Value) {
    let name = &host.seen.name;
    let path = format!("/hosts/{name}/failure-state");
    let answered = field.api.put(&path, report.clone()).await;
    let words = answered.as_ref().map(super::api::Answered::words);
    let state = report["failure_state"].as_str().unwrap_or_default();
    let words = words.unwrap_or_else(|| "no answer".to_owned());
    field.log.host(
        name,
        &format!(
            "reported {state} boot {} at {}: {words}",
            host.boot, report["observed_at"]
        ),
    );
    if answered.is_some_and(|answered| answered.is_ok()) {
        count(&field.figures.reports);
        if host.seen.failure_state == FailureState::Up {
            field.truth.heard(name, host.boot);
        }
    }
}
