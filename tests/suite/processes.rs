//! The `ringfence` program: services as processes, killed and started again, and the commands that call them.

mod backup;
mod dead_letters;
pub(crate) mod distributed;
mod doctor;
mod doctor_findings;
mod keystone;
mod logs;
mod lost_answers;
mod metrics;
mod refusals;
mod standalone;
mod tls;
mod tls_peers;
mod traces;
mod upgrades;

use ringfence_tests::Client;
use serde_json::Value;

/// Asserts that events are numbered from 1 without a gap, in all and per host.
fn assert_gapless(events: &Value) {
    let events = events["events"].as_array().unwrap();
    let sequences: Vec<_> = events
        .iter()
        .map(|event| event["sequence"].as_u64().unwrap())
        .collect();
    let expected: Vec<_> = (1..=sequences.len() as u64).collect();
    assert_eq!(sequences, expected);
    let mut last = std::collections::BTreeMap::new();
    for event in events {
        let number = last.entry(event["host_id"].as_str().unwrap()).or_insert(0);
        *number += 1;
        assert_eq!(event["host_sequence"].as_u64(), Some(*number), "{event}");
    }
}

/// How often the host turned FENCED in this generation.
fn times_fenced(events: &Value, host: &str, generation: &Value) -> usize {
    let is_it = |event: &&Value| {
        event["type"] == "host.fenced" && event["host"] == host && event["generation"] == *generation
    };
    events["events"].as_array().unwrap().iter().filter(is_it).count()
}

/// All events, once the host's turn to FENCED is among them: events get their numbers shortly after their commit.
async fn until_told(client: &Client, host: &str, generation: &Value) -> Value {
    let is_told = |events: &Value| times_fenced(events, host, generation) > 0;
    client.until("/events?limit=1000", is_told).await
}
