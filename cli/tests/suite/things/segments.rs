//! Segments as documents, beside others who change them.

use std::fs;

use ringfence_core::SegmentDraft;
use serde_json::{Value, json};

use crate::rig::Machine;
use crate::service::{Asked, Reply, Service};

fn rack(at_most: u32) -> Value {
    let text = json!({"name": "rack-1", "policy": {"fencing": {"at_most": at_most}}});
    let segment: SegmentDraft = serde_json::from_value(text).unwrap();
    let mut shown = segment.whole();
    shown["id"] = json!("s1");
    shown["created_at"] = json!("2026-01-31T12:00:00Z");
    shown
}

fn answer(asked: &Asked, put: impl Fn() -> Reply) -> Reply {
    match asked.line.as_str() {
        "POST /segment-check" => Reply::empty(204),
        "GET /segments/rack-1" => Reply::json(200, &rack(5)).with("ETag: \"3\""),
        "PUT /segments/s1" => put(),
        _ => Reply::error(404, "fencing.segment.not_found", "there is no segment"),
    }
}

fn with_document(service: &Service, text: &str) -> Machine {
    let machine = Machine::with(service);
    fs::write(machine.home().join("rack.yaml"), text).unwrap();
    machine
}

fn apply(machine: &Machine) -> crate::rig::Run {
    let file = machine.home().join("rack.yaml");
    machine.run(&["segment", "apply", "-f", &file.display().to_string()])
}

const WANTED: &str = "name: rack-1\npolicy: {fencing: {at_most: 3}}\n";

#[test]
fn a_segment_is_written_in_the_place_of_what_was_compared() {
    let service = Service::start(|_, asked| answer(asked, || Reply::json(200, &rack(3))));
    let run = apply(&with_document(&service, WANTED));
    let expected = "rack-1: changed\n  policy.fencing.at_most: 5 -> 3\n";
    assert_eq!((run.code, run.out.as_str()), (0, expected), "{run:?}");
    let put = service.asked().pop().unwrap();
    assert_eq!(put.header("if-match"), Some("\"3\""));
    assert_eq!(put.body["policy"]["fencing"]["at_most"], 3);
}

#[test]
fn a_change_of_another_person_is_not_overwritten() {
    let changed = || Reply::error(412, "fencing.revision.changed", "it is at revision 4");
    let service = Service::start(move |_, asked| answer(asked, changed));
    let run = apply(&with_document(&service, WANTED));
    assert_eq!((run.code, run.out.as_str()), (1, ""), "{run:?}");
    assert!(
        run.err
            .contains("segment \"rack-1\" was changed after it was read"),
        "{run:?}"
    );
    assert_eq!(
        service
            .lines()
            .iter()
            .filter(|line| line.starts_with("PUT"))
            .count(),
        1
    );
}

#[test]
fn a_segment_with_a_field_that_this_program_does_not_know_is_left_alone() {
    let service = Service::start(|_, asked| match asked.line.as_str() {
        "POST /segment-check" => Reply::empty(204),
        _ => {
            let mut newer = rack(5);
            newer["policy"]["moon_phase"] = json!(3);
            Reply::json(200, &newer)
        }
    });
    let run = apply(&with_document(&service, WANTED));
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.err.contains("moon_phase"), "{run:?}");
    assert!(!service.lines().iter().any(|line| line.starts_with("PUT")));
}

#[test]
fn a_template_needs_no_service() {
    let run = Machine::new().run(&["segment", "template", "nova-cell"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.out.contains("name: nova-cell-1\n"), "{run:?}");
    let run = Machine::new().run(&["segment", "export"]);
    assert_eq!(run.code, 6, "{run:?}");
}

#[test]
fn a_file_without_a_document_is_refused() {
    let service = Service::start(|_, asked| answer(asked, || Reply::empty(500)));
    let run = apply(&with_document(&service, "# nothing yet\n"));
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.err.contains("rack.yaml: holds no document"), "{run:?}");
    let run = apply(&with_document(&service, &"# padding\n".repeat(110_000)));
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.err.contains("longer than 1 MiB"), "{run:?}");
    assert_eq!(service.lines(), Vec::<String>::new());
}
