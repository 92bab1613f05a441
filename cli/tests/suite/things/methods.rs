//! Methods and plans.

use std::fs;

use serde_json::{Value, json};

use crate::rig::Machine;
use crate::service::{Reply, Service};

fn method() -> Value {
    json!({
        "id": "m1", "name": "bmc", "resource": "power", "driver": "ipmi", "parameters": {"ip": "192.0.2.1"},
        "secrets": {"password": "env:BMC"}, "zone": null, "times": {"retries": 1},
        "created_at": "2026-01-31T12:00:00Z", "updated_at": "2026-01-31T12:00:00Z",
    })
}

#[test]
fn a_method_is_replaced_without_the_fields_that_the_service_adds() {
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
fn method_check_asks_the_device_for_its_state() {
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
