//! Operations named by the beginning of their ids, or by their hosts.

use serde_json::{Value, json};

use crate::rig::Machine;
use crate::service::{Reply, Service};

const ONE: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";
const OTHER: &str = "0f8fad5b-7e67-4425-90de-944be07fc1f9";

fn operation(id: &str) -> Value {
    json!({
        "id": id, "host_id": "h1", "host": "compute1", "kind": "fence", "status": "running", "generation": 4,
        "detail": "", "proofs": [], "stages": [],
    })
}

/// A service with both operations, of one host.
fn service() -> Service {
    Service::start(|_, asked| {
        let line = asked.line.as_str();
        let list = |ids: &[&str]| {
            let operations: Vec<Value> = ids.iter().map(|id| operation(id)).collect();
            Reply::json(200, &json!({"operations": operations, "links": []}))
        };
        if let Some(range) = line.strip_prefix("GET /operations?id=gte%3A") {
            let (low, rest) = range.split_once("&id=lte%3A").unwrap();
            let high = &rest[..36];
            let fitting: Vec<&str> = [ONE, OTHER]
                .into_iter()
                .filter(|id| low <= *id && *id <= high)
                .collect();
            return list(&fitting);
        }
        match line {
            "GET /operations?host=compute1&limit=1" => list(&[OTHER]),
            "GET /operations?host=compute2&limit=1" => list(&[]),
            line if line.starts_with("GET /operations?host=") => {
                Reply::error(404, "fencing.host.not_found", "no such host")
            }
            line => match [ONE, OTHER].into_iter().find(|id| line.contains(id)) {
                Some(id) => Reply::json(200, &operation(id)),
                None => Reply::error(404, "fencing.operation.not_found", "no such operation"),
            },
        }
    })
}

#[test]
fn an_operation_is_found_by_the_beginning_of_its_id() {
    let service = service();
    let machine = Machine::with(&service);
    for given in [ONE, "0f8fad5b-d", "0f8fad5b-d9cb-4"] {
        let run = machine.run(&["operation", "show", given]);
        assert_eq!(run.code, 0, "{given}: {run:?}");
        assert!(run.out.contains(ONE), "{given}: {run:?}");
    }
    let run = machine.run(&["operation", "cancel", "0f8fad5b-7", "--reason", "test"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        service
            .lines()
            .contains(&format!("POST /operations/{OTHER}/cancel"))
    );
}

#[test]
fn an_ambiguous_beginning_of_an_id_is_refused_with_all_matches() {
    let service = service();
    let run = Machine::with(&service).run(&["operation", "cancel", "0f8f", "--reason", "test"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.err.contains("begin with \"0f8f\""), "{run:?}");
    for id in [ONE, OTHER] {
        assert!(
            run.err.contains(&format!("{id}  compute1: fence running")),
            "{run:?}"
        );
    }
    assert!(!service.lines().iter().any(|line| line.starts_with("POST")));
}

#[test]
fn a_host_stands_for_its_live_or_last_operation_in_commands_without_a_change() {
    let service = service();
    let machine = Machine::with(&service);
    let run = machine.run(&["operation", "show", "compute1"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.out.contains(OTHER), "{run:?}");
    let none = machine.run(&["operation", "show", "compute2"]);
    assert_eq!(none.code, 4, "{none:?}");
    assert!(none.err.contains("compute2 has had no operation yet"), "{none:?}");
    let unknown = machine.run(&["operation", "show", "compute9"]);
    assert_eq!(unknown.code, 4, "{unknown:?}");
    // A command with a change needs the operation's id.
    let run = machine.run(&["operation", "cancel", "compute1", "--reason", "test"]);
    assert_eq!(run.code, 4, "{run:?}");
    assert!(!service.lines().iter().any(|line| line.starts_with("POST")));
}
