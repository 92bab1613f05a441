//! What happens to one host, and what people do with it: the host dies, is fenced, repaired and taken back, and people change their minds.
//!
//! People are truthful. They know the service by its API, and the host by standing before it.

use std::sync::Arc;
use std::time::Duration;

use ringfence_simulators::Condition;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::field::Field;
use crate::report::count;
use crate::rng::Dice;

/// An action of a person, or the death of the host.
#[derive(Clone, Copy)]
enum Action {
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

/// Acts until the campaign is in its end phase.
pub async fn act(field: Arc<Field>, host: String, number: u64) {
    let mut dice = Dice::of(field.options.seed, 1_000 + number);
    while !field.is_calm() {
        sleep(Duration::from_millis(dice.between(100, 900))).await;
        let Some(seen) = field.api.get(&format!("/hosts/{host}")).await else {
            continue;
        };
        let action = choose(&seen, &mut dice);
        if !field.is_calm() {
            carry_out(&field, &host, &seen, action, &mut dice).await;
        }
    }
}

fn choose(host: &Value, dice: &mut Dice) -> Action {
    let is = |field: &str, word: &str| host[field] == word;
    let status = host["operation"]["status"].as_str();
    let weights: &[(u64, Action)] = match status {
        Some("running") => &[
            (92, Action::Nothing),
            (3, Action::Cancel),
            (2, Action::Fence),
            (2, Action::Rejoin),
            (1, Action::Confirm),
        ],
        Some("needs_operator") => &[
            (20, Action::Retry),
            (15, Action::Repair),
            (10, Action::Cancel),
            (10, Action::Confirm),
            (45, Action::Nothing),
        ],
        _ if is("fencing_state", "FENCED") => &[
            (35, Action::Rejoin),
            (10, Action::Repair),
            (5, Action::Evacuate),
            (4, Action::Fence),
            (4, Action::ConfirmStale),
            (42, Action::Nothing),
        ],
        _ if is("failure_state", "UP") => &[
            (25, Action::Dies),
            (3, Action::Fence),
            (2, Action::Rejoin),
            (70, Action::Nothing),
        ],
        _ => &[
            (45, Action::Fence),
            (8, Action::Repair),
            (7, Action::Confirm),
            (2, Action::Rejoin),
            (38, Action::Nothing),
        ],
    };
    dice.weighted(weights).unwrap_or(Action::Nothing)
}

async fn carry_out(field: &Field, host: &str, seen: &Value, action: Action, dice: &mut Dice) {
    let of_host = |what: &str| format!("/hosts/{host}/{what}");
    let because = json!({ "reason": "campaign" });
    let of_operation = |what: &str| {
        let id = seen["operation"]["id"].as_str().unwrap_or_default();
        format!("/operations/{id}/{what}")
    };
    let generation = seen["generation"].as_u64().unwrap_or_default();
    match action {
        Action::Nothing => {}
        Action::Dies => die(field, host, dice),
        Action::Repair => repair(field, host),
        Action::Fence => ask(field, host, &of_host("fence"), because).await,
        Action::Rejoin => ask(field, host, &of_host("rejoin"), because).await,
        Action::Evacuate => ask(field, host, &of_host("evacuate"), because).await,
        Action::Cancel => ask(field, host, &of_operation("cancel"), because).await,
        Action::Retry => ask(field, host, &of_operation("retry"), because).await,
        Action::Confirm if field.truth.confirm_dead(host).is_some() => {
            let word = json!({ "generation": generation, "reason": "I have seen the dead host" });
            ask(field, host, &of_host("confirm-fenced"), word).await;
        }
        Action::Confirm => {}
        Action::ConfirmStale if generation > 0 => {
            let word = json!({ "generation": generation - 1, "reason": "an old generation" });
            ask(field, host, &of_host("confirm-fenced"), word).await;
        }
        Action::ConfirmStale => {}
    }
}

/// Sends a request, and logs the answer.
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

/// Makes the host hang and go on writing, or crashes its kernel.
fn die(field: &Field, host: &str, dice: &mut Dice) {
    let condition = if dice.one_of(75) {
        Condition::Hung
    } else {
        Condition::Crashed
    };
    count(&field.figures.deaths);
    field.log.host(host, &format!("the host: {condition:?}"));
    note(field, host, field.truth.set_condition(host, condition));
}

/// Boots the host by hand, if it has power.
pub fn repair(field: &Field, host: &str) {
    if field.truth.moment(host).is_some_and(|moment| moment.powered) {
        field.log.host(host, "the host is booted by hand");
        note(field, host, field.truth.reboot(host));
    }
}

/// Switches the host on by hand, if it has no power.
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
