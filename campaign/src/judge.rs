//! The judge: compares the API's answers with the physical state before and after each answer.
//!
//! A host that wrote before the question and after the answer, within one boot, wrote when the answer was made.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::time::sleep;

use crate::field::Field;
use crate::report::count;
use crate::truth::{Moment, WRITES_EVERY};

/// The least time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(40);

/// Lets the hosts write, and watches their storage, until it is dropped.
pub async fn write(field: Arc<Field>) {
    loop {
        for host in field.truth.write() {
            let detail = "the boot that was cut off has its storage back while it runs".to_owned();
            field.violated("storage to the boot that was cut off", &host, detail);
        }
        sleep(WRITES_EVERY).await;
    }
}

/// Judges until it is dropped.
pub async fn judge(field: Arc<Field>) {
    let mut last: BTreeMap<String, Seen> = BTreeMap::new();
    loop {
        let begun = Instant::now();
        let before = field.truth.moments();
        if let Some(list) = field.api.get("/hosts?limit=1000").await {
            for host in list["hosts"].as_array().into_iter().flatten() {
                look_at(&field, host, &before, &mut last, begun).await;
            }
        }
        sleep(LOOK_EVERY).await;
    }
}

/// What was last read of a host.
struct Seen {
    is_fenced: bool,
    generation: u64,
    /// The time of that question.
    at: Instant,
}

async fn look_at(
    field: &Field,
    host: &Value,
    before: &BTreeMap<String, Moment>,
    last: &mut BTreeMap<String, Seen>,
    begun: Instant,
) {
    let name = host["name"].as_str().unwrap_or_default();
    let is_fenced = host["fencing_state"] == "FENCED";
    let seen = Seen {
        is_fenced,
        generation: host["generation"].as_u64().unwrap_or_default(),
        at: begun,
    };
    let known = last.insert(name.to_owned(), seen);
    let was_fenced = known.as_ref().is_some_and(|known| known.is_fenced);
    if was_fenced && !is_fenced {
        count(&field.figures.unfenced);
    }
    if is_fenced && !was_fenced {
        count(&field.figures.fenced);
        field.log.host(name, &format!("is FENCED: {}", host["proofs"]));
        if let (Some(known), Some(before)) = (&known, before.get(name)) {
            judge_fenced(field, name, host, known, before);
        }
    }
    if is_fenced {
        judge_gates(field, name, host).await;
    }
}

/// Judges a host that has turned FENCED since the last look.
fn judge_fenced(field: &Field, name: &str, host: &Value, known: &Seen, before: &Moment) {
    let Some(now) = field.truth.moment(name) else {
        return;
    };
    let has_written = field.truth.has_written_since(name, known.at) && before.wrote_until(&now);
    if has_written && !is_excused(host, &now) {
        let since = known.generation;
        let detail = format!(
            "the host has written all the time since it was UNFENCED in generation {since}: {host}; {now:?}"
        );
        field.violated("false FENCED", name, detail);
    }
}

async fn judge_gates(field: &Field, name: &str, host: &Value) {
    let before = field.truth.moment(name);
    let Some(gates) = field.api.get(&format!("/hosts/{name}/gates")).await else {
        return;
    };
    let after = field.truth.moment(name);
    count(&field.figures.gates);
    if gates["evacuate"]["allowed"] != true {
        return;
    }
    count(&field.figures.open);
    let (Some(before), Some(after)) = (before, after) else {
        return;
    };
    if before.wrote_until(&after) && !is_excused(host, &after) {
        let detail = format!("the evacuate gate is open and the host writes: {gates}; {host}; {after:?}");
        field.violated("open gate", name, detail);
    }
}

/// Whether a person truly confirmed that the host was dead, and the host was started by hand afterwards.
fn is_excused(host: &Value, now: &Moment) -> bool {
    let mut proofs = host["proofs"].as_array().into_iter().flatten();
    let rests_on_a_word = proofs.any(|proof| proof["kind"] == "operator");
    rests_on_a_word && now.word.is_some_and(|boot| boot != now.boot)
}
