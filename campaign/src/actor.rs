//! What happens at one host, and what people ask for it: it dies, it is fenced, they change their minds, it is repaired and taken back.
//!
//! They speak the truth. What they see of the service is what its API says; what they see of the host they see by standing before it.

use std::sync::Arc;
use std::time::Duration;

use ringfence_simulators::Condition;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::field::Field;
use crate::report::count;
use crate::rng::Dice;

/// What somebody asks for or does.
#[derive(Clone, Copy)]
enum Deed {
    Nothing,
    Dies,
    Fence,
    Rejoin,
    Evacuate,
    Confirm,
    ConfirmStale,
    Cancel,
    Retry,
    Repair,
}

/// Goes on until nothing is to be asked for any more.
pub async fn act(field: Arc<Field>, host: String, number: u64) {
    let mut dice = Dice::of(field.options.seed, 1_000 + number);
    while !field.is_calm() {
        sleep(Duration::from_millis(dice.between(100, 900))).await;
        let Some(seen) = field.api.get(&format!("/hosts/{host}")).await else {
            continue;
        };
        let deed = choose(&seen, &mut dice);
        if !field.is_calm() {
            carry_out(&field, &host, &seen, deed, &mut dice).await;
        }
    }
}

fn choose(host: &Value, dice: &mut Dice) -> Deed {
    let is = |field: &str, word: &str| host[field] == word;
    let status = host["operation"]["status"].as_str();
    let weights: &[(u64, Deed)] = match status {
        Some("running") => &[
            (92, Deed::Nothing),
            (3, Deed::Cancel),
            (2, Deed::Fence),
            (2, Deed::Rejoin),
            (1, Deed::Confirm),
        ],
        Some("needs_operator") => &[
            (20, Deed::Retry),
            (15, Deed::Repair),
            (10, Deed::Cancel),
            (10, Deed::Confirm),
            (45, Deed::Nothing),
        ],
        _ if is("fencing_state", "FENCED") => &[
            (35, Deed::Rejoin),
            (10, Deed::Repair),
            (5, Deed::Evacuate),
            (4, Deed::Fence),
            (4, Deed::ConfirmStale),
            (42, Deed::Nothing),
        ],
        _ if is("failure_state", "UP") => &[
            (25, Deed::Dies),
            (3, Deed::Fence),
            (2, Deed::Rejoin),
            (70, Deed::Nothing),
        ],
        _ => &[
            (45, Deed::Fence),
            (8, Deed::Repair),
            (7, Deed::Confirm),
            (2, Deed::Rejoin),
            (38, Deed::Nothing),
        ],
    };
    dice.weighted(weights).unwrap_or(Deed::Nothing)
}

async fn carry_out(field: &Field, host: &str, seen: &Value, deed: Deed, dice: &mut Dice) {
    let of_host = |what: &str| format!("/hosts/{host}/{what}");
    let because = json!({ "reason": "campaign" });
    let of_operation = |what: &str| {
        let id = seen["operation"]["id"].as_str().unwrap_or_default();
        format!("/operations/{id}/{what}")
    };
    let generation = seen["generation"].as_u64().unwrap_or_default();
    match deed {
        Deed::Nothing => {}
        Deed::Dies => die(field, host, dice),
        Deed::Repair => repair(field, host),
        Deed::Fence => ask(field, host, &of_host("fence"), because).await,
        Deed::Rejoin => ask(field, host, &of_host("rejoin"), because).await,
        Deed::Evacuate => ask(field, host, &of_host("evacuate"), because).await,
        Deed::Cancel => ask(field, host, &of_operation("cancel"), because).await,
        Deed::Retry => ask(field, host, &of_operation("retry"), because).await,
        Deed::Confirm if field.truth.give_word(host).is_some() => {
            let word = json!({ "generation": generation, "reason": "it lies before me" });
            ask(field, host, &of_host("confirm-fenced"), word).await;
        }
        Deed::Confirm => {}
        Deed::ConfirmStale if generation > 0 => {
            let word = json!({ "generation": generation - 1, "reason": "of another time" });
            ask(field, host, &of_host("confirm-fenced"), word).await;
        }
        Deed::ConfirmStale => {}
    }
}

/// Asks, and writes down what came of it.
pub async fn ask(field: &Field, host: &str, path: &str, body: Value) {
    count(&field.figures.requests);
    field.log.host(host, &format!("POST {path}"));
    let answered = field.api.post(path, body).await;
    if answered.as_ref().is_some_and(super::api::Answered::is_ok) {
        count(&field.figures.taken);
    }
    let words = answered.map_or_else(|| "no answer".to_owned(), |answered| answered.words());
    field.log.host(host, &format!("POST {path}: {words}"));
}

/// A host hangs and goes on writing, or its kernel dies.
fn die(field: &Field, host: &str, dice: &mut Dice) {
    let condition = if dice.one_of(75) {
        Condition::Hung
    } else {
        Condition::Crashed
    };
    count(&field.figures.deaths);
    field.log.host(host, &format!("the host: {condition:?}"));
    note(field, host, field.truth.befalls(host, condition));
}

/// Somebody boots the host, if it has power.
pub fn repair(field: &Field, host: &str) {
    if field.truth.moment(host).is_some_and(|moment| moment.powered) {
        field.log.host(host, "the host is booted by hand");
        note(field, host, field.truth.reboot(host));
    }
}

/// Somebody gives the host power, if it has none.
pub fn switch_on(field: &Field, host: &str) {
    if field.truth.moment(host).is_some_and(|moment| !moment.powered) {
        field.log.host(host, "the host is switched on by hand");
        note(field, host, field.truth.switch_on(host));
    }
}

fn note(field: &Field, host: &str, done: Result<(), ringfence_simulators::SimulatorError>) {
    if let Err(error) = done {
        field.log.host(host, &format!("not done: {error}"));
    }
}
