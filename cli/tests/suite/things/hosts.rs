//! Hosts: lists, changes, and reports of people.

use serde_json::json;

use super::host;
use crate::rig::Machine;
use crate::service::{Reply, Service};

#[test]
fn all_pages_of_a_list_are_fetched_from_one_service() {
    let service = Service::start(|_, asked| {
        if asked.line.contains("marker=c1") {
            return Reply::json(200, &json!({"hosts": [host("c2")], "links": []}));
        }
        let next =
            json!([{"rel": "next", "href": "http://elsewhere.example/hosts?fencing_state=FENCED&marker=c1"}]);
        Reply::json(200, &json!({"hosts": [host("c1")], "links": next}))
    });
    let run = Machine::with(&service).run(&["host", "list", "--fencing-state", "fenced"]);
    assert_eq!(run.code, 0, "{run:?}");
    let expected = "\
NAME  SEGMENT  SEEN  FENCING   GENERATION  OPERATION
c1    default  UP    UNFENCED  0           -
c2    default  UP    UNFENCED  0           -
";
    assert_eq!(run.out, expected);
    assert_eq!(service.lines()[1], "GET /hosts?fencing_state=FENCED&marker=c1");
}

#[test]
fn json_output_is_the_services_answer() {
    let service = Service::start(|_, _| Reply::json(200, &host("c1")));
    let run = Machine::with(&service).run(&["host", "show", "c1", "-o", "json"]);
    assert_eq!(run.json(), host("c1"));
}

#[test]
fn a_source_is_removed_with_a_reason() {
    let service = Service::start(|_, _| Reply::json(200, &host("c1")));
    let run = Machine::with(&service).run(&[
        "host",
        "forget-source",
        "c1",
        "prober/rack 1",
        "-r",
        "it was taken down",
    ]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.out.starts_with("c1: prober/rack 1 is forgotten"),
        "{}",
        run.out
    );
    let asked = service.asked().remove(0);
    assert_eq!(asked.line, "DELETE /hosts/c1/sources/prober%2Frack%201");
    assert_eq!(asked.body, json!({"reason": "it was taken down"}));
}

#[test]
fn a_parameter_of_a_host_is_changed_alone_and_only_with_the_present_entity_tag() {
    let service = Service::start(|_, _| Reply::json(200, &host("c1")).with("ETag: \"7\""));
    let run = Machine::with(&service).run(&[
        "host",
        "set",
        "c1",
        "--parameter",
        "bmc.port=624",
        "--zone",
        "z2",
        "--no-type",
    ]);
    assert_eq!(run.code, 0, "{run:?}");
    let patch = service.asked().pop().unwrap();
    assert_eq!(patch.line, "PATCH /hosts/c1");
    assert_eq!(patch.header("if-match"), Some("\"7\""));
    let expected =
        json!({"parameters": {"bmc": {"ip": "192.0.2.1", "port": "624"}}, "type": null, "zone": "z2"});
    assert_eq!(patch.body, expected);
}

#[test]
fn a_report_by_a_person_has_its_source_and_time() {
    let service = Service::start(|_, _| Reply::json(200, &host("c1")));
    assert_eq!(
        Machine::with(&service)
            .run(&["host", "seen", "c1", "unreachable"])
            .code,
        0
    );
    let asked = service.asked().pop().unwrap();
    assert_eq!(asked.line, "PUT /hosts/c1/failure-state");
    assert_eq!(
        (&asked.body["failure_state"], &asked.body["source"]),
        (&json!("UNREACHABLE"), &json!("operator"))
    );
    assert!(asked.body["observed_at"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn a_name_with_a_slash_is_one_name() {
    let service = Service::start(|_, _| Reply::empty(204));
    assert_eq!(Machine::with(&service).run(&["host", "delete", "a/../b"]).code, 0);
    assert_eq!(service.lines(), ["DELETE /hosts/a%2F..%2Fb"]);
    assert_eq!(Machine::with(&service).run(&["host", "delete", ".."]).code, 2);
}

#[test]
fn a_closed_output_pipe_is_no_failure() {
    let service = Service::start(|_, _| Reply::json(200, &host("c1")));
    let mut child = Machine::with(&service)
        .command(&["host", "show", "c1"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn warnings_of_the_service_are_shown_after_a_change() {
    let service = Service::start(|_, _| {
        Reply::json(
            201,
            &json!({
                "id": "h1", "name": "c1", "failure_state": "UNKNOWN", "fencing_state": "UNFENCED", "generation": 0, "operation": null,
                "warnings": ["type: no plan is for hosts of the type \"rak\"; types with a plan are rack"],
            }),
        )
    });
    let machine = Machine::with(&service);
    let run = machine.run(&["host", "add", "c1", "--type", "rak"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(
        run.err,
        "warning: type: no plan is for hosts of the type \"rak\"; types with a plan are rack\n"
    );
    let run = machine.run(&["host", "add", "c1", "--type", "rak", "-o", "json"]);
    assert_eq!(run.err, "");
    assert_eq!(run.json()["warnings"].as_array().unwrap().len(), 1);
}
