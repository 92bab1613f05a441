//! Listing, adding and changing hosts, methods, plans and segments.

use std::fs;

use serde_json::{Value, json};

use crate::rig::Machine;
use crate::service::{Reply, Service};

fn host(name: &str) -> Value {
    json!({
        "id": name, "name": name, "segment": "default", "backend": "none", "zone": "default",
        "parameters": {"bmc": {"ip": "192.0.2.1"}}, "failure_state": "UP", "fencing_state": "UNFENCED", "generation": 0,
        "operation": null, "created_at": "2026-01-31T12:00:00Z",
    })
}

fn method() -> Value {
    json!({
        "id": "m1", "name": "bmc", "resource": "power", "driver": "ipmi", "parameters": {"ip": "192.0.2.1"},
        "secrets": {"password": "env:BMC"}, "zone": null, "times": {"retries": 1},
        "created_at": "2026-01-31T12:00:00Z", "updated_at": "2026-01-31T12:00:00Z",
    })
}

#[test]
fn all_pages_of_a_list_are_fetched_from_the_same_service() {
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
fn programs_get_what_the_service_said() {
    let service = Service::start(|_, _| Reply::json(200, &host("c1")));
    let run = Machine::with(&service).run(&["host", "show", "c1", "-o", "json"]);
    assert_eq!(run.json(), host("c1"));
}

#[test]
fn a_parameter_of_a_host_is_changed_beside_the_others_and_only_if_nobody_else_did() {
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
fn a_report_of_a_person_says_so_and_when() {
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
fn a_method_is_changed_as_a_whole_without_what_the_service_adds() {
    let service = Service::start(|_, _| Reply::json(200, &method()).with("ETag: \"3\""));
    let run = Machine::with(&service).run(&[
        "method",
        "set",
        "bmc",
        "--retries",
        "4",
        "--no-secret",
        "password",
    ]);
    assert_eq!(run.code, 0, "{run:?}");
    let put = service.asked().pop().unwrap();
    assert_eq!(
        (put.line.as_str(), put.header("if-match")),
        ("PUT /methods/bmc", Some("\"3\""))
    );
    let expected = json!({
        "name": "bmc", "resource": "power", "driver": "ipmi", "parameters": {"ip": "192.0.2.1"}, "secrets": {},
        "zone": null, "times": {"retries": 4},
    });
    assert_eq!(put.body, expected);
}

#[test]
fn a_secret_in_plain_text_reaches_neither_the_service_nor_the_screen() {
    let service = Service::start(|_, _| Reply::json(201, &method()));
    let words = [
        "method",
        "add",
        "bmc",
        "--driver",
        "ipmi",
        "--secret",
        "password=hush",
    ];
    let run = Machine::with(&service).run(&words);
    assert_eq!(run.code, 2);
    assert!(
        !run.err.contains("hush") && run.err.contains("env:NAME"),
        "{}",
        run.err
    );
    assert!(service.lines().is_empty());
}

#[test]
fn a_device_is_asked_for_its_state() {
    let service = Service::start(|_, _| {
        let seen =
            json!({"state": "on", "detail": "Chassis Power is on", "observed_at": "2026-01-31T12:00:00Z"});
        Reply::json(200, &json!({"observation": seen, "worker": "w1", "took_ms": 42}))
    });
    let run = Machine::with(&service).run(&["method", "check", "bmc", "--host", "c1"]);
    assert_eq!(
        run.out, "bmc: on (Chassis Power is on), by w1 in 42 ms\n",
        "{}",
        run.err
    );
    assert_eq!(service.asked()[0].body, json!({"host": "c1"}));
}

#[test]
fn a_plan_comes_from_a_file() {
    let plan = json!({
        "id": "p", "name": "racks", "scope": {"kind": "default"}, "sufficient_sets": [["power.off"]],
        "stages": [{"delay_s": 0, "tasks": [{"kind": "power.off", "levels": [{"level": 1, "methods": ["bmc"]}]}]}],
    });
    let answer = plan.clone();
    let service = Service::start(move |_, _| Reply::json(201, &answer));
    let machine = Machine::with(&service);
    let file = machine.home().join("plan.toml");
    let text =
        "[[stages]]\n[[stages.tasks]]\nkind = \"power.off\"\nlevels = [{ level = 1, methods = [\"bmc\"] }]\n";
    fs::write(&file, text).unwrap();
    let run = machine.run(&["plan", "add", "racks", "--file", file.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.out.contains("1      0 s    power.off  1      bmc"),
        "{}",
        run.out
    );
    let expected = json!({"name": "racks", "stages": [{"tasks": [
        {"kind": "power.off", "levels": [{"level": 1, "methods": ["bmc"]}]}]}]});
    assert_eq!(service.asked()[0].body, expected);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let service = Service::start(|_, _| Reply::json(200, &host("c1")));
    let mut child = Machine::with(&service)
        .command(&["host", "show", "c1"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
