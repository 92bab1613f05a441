//! Who may write a person's word in a `NodeFence`.

use serde_json::{Value, json};

use super::policies::{RINGFENCE, Verdict, judge};
use super::requests::{breaking_glass, request, with};

fn fence(confirmation: Value) -> Value {
    json!({
        "apiVersion": "ringfence.io/v1alpha1", "kind": "NodeFence",
        "metadata": { "name": "n1", "uid": "f1-2a", "finalizers": ["ringfence.io/rejoin"] },
        "spec": { "nodeName": "n1", "reason": "dead", "confirmation": confirmation },
    })
}

fn silent() -> Value {
    let mut fence = fence(Value::Null);
    fence["spec"].as_object_mut().unwrap().remove("confirmation");
    fence
}

fn word(by: &str) -> Value {
    json!({ "generation": 1, "reason": "I pulled its plug", "confirmedBy": by })
}

/// A request by a user who may confirm the fence of n1.
fn by_confirmer(user: &str, old: Value, new: Value) -> Value {
    with(
        by_another(user, old, new),
        "/rights",
        json!(["confirm nodefences.ringfence.io/n1"]),
    )
}

/// A request by a user who may change the object, and not confirm.
fn by_another(user: &str, old: Value, new: Value) -> Value {
    let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
    let rights = json!([
        "update nodefences.ringfence.io/n1",
        "confirm nodefences.ringfence.io/n2"
    ]);
    with(
        request(user, operation, "nodefences", [old, new]),
        "/rights",
        rights,
    )
}

#[track_caller]
fn assert_passes(request: &Value) {
    let verdict = judge(request, None);
    assert!(verdict.is_let_through(), "{verdict:?}");
}

#[track_caller]
fn held(request: &Value) -> Verdict {
    let verdict = judge(request, None);
    let by = "ringfence-confirmations";
    assert!(
        !verdict.denials.is_empty() && verdict.held_by().iter().all(|one| *one == by),
        "{verdict:?}"
    );
    verdict
}

#[test]
fn a_person_writes_a_word_under_the_persons_own_name_and_with_the_right() {
    assert_passes(&by_confirmer("alice", Value::Null, fence(word("alice"))));
    assert_passes(&by_confirmer("alice", silent(), fence(word("alice"))));
    // A word of another person is followed by one's own.
    assert_passes(&by_confirmer("alice", fence(word("bob")), fence(word("alice"))));
}

#[test]
fn a_word_under_another_name_or_under_none_is_held() {
    let mut unsigned = word("alice");
    unsigned.as_object_mut().unwrap().remove("confirmedBy");
    for word in [word("bob"), word(""), unsigned] {
        for old in [
            Value::Null,
            silent(),
            fence(json!({ "generation": 0, "reason": "r", "confirmedBy": "alice" })),
        ] {
            let told = held(&by_confirmer("alice", old, fence(word.clone())));
            let told = &told.denials[0].1;
            assert!(
                told.contains("NodeFence n1") && told.contains("\"alice\" asks"),
                "{told}"
            );
        }
    }
}

#[test]
fn a_word_of_a_person_without_the_right_is_held_and_cannot_be_overridden() {
    for old in [Value::Null, silent(), fence(word("bob"))] {
        let request = by_another("alice", old, fence(word("alice")));
        let told = held(&request);
        assert!(told.denials[0].1.contains("the verb confirm"), "{told:?}");
        held(&breaking_glass(request));
    }
    let name = by_confirmer("alice", silent(), fence(word("bob")));
    held(&breaking_glass(name));
}

#[test]
fn each_change_of_a_word_is_a_word() {
    for (field, value) in [
        ("generation", json!(2)),
        ("reason", json!("I looked")),
        ("confirmedBy", json!("bob")),
    ] {
        let mut changed = word("alice");
        changed[field] = value;
        held(&by_another("bob", fence(word("alice")), fence(changed)));
    }
}

#[test]
fn others_change_an_object_with_a_word_and_take_the_word_away() {
    let said = fence(word("alice"));
    for user in [RINGFENCE, "bob"] {
        assert_passes(&by_another(user, Value::Null, silent()));
        assert_passes(&by_another(
            user,
            silent(),
            with(silent(), "/spec/suspend", json!(true)),
        ));
        assert_passes(&by_another(
            user,
            said.clone(),
            with(said.clone(), "/spec/suspend", json!(true)),
        ));
        let finalizers = with(said.clone(), "/metadata/finalizers", json!([]));
        assert_passes(&by_another(user, said.clone(), finalizers));
        assert_passes(&by_another(user, said.clone(), silent()));
    }
    // A status carries no word.
    let request = request("bob", "UPDATE", "nodefences/status", [silent(), said]);
    assert_passes(&request);
}
