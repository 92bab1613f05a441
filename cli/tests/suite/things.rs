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

/// A service with the hosts `c1` (made by `host`) and the segments `default` and `rack-1`.
fn with_hosts() -> Service {
    Service::start(|_, asked| {
        if asked.line.starts_with("GET /hosts?") {
            return Reply::json(200, &json!({"hosts": [host("c1")], "links": []}));
        }
        if asked.line.starts_with("GET /segments") {
            let segments = json!([{"id": "s", "name": "default"}, {"id": "t", "name": "rack-1"}]);
            return Reply::json(200, &json!({"segments": segments}));
        }
        if asked.line.starts_with("POST /bulk/hosts") {
            return Reply::json(200, &added(&asked.body));
        }
        Reply::json(200, &host("c1")).with("ETag: \"7\"")
    })
}

/// The service's answer to many hosts.
fn added(body: &Value) -> Value {
    let error =
        json!({"request_id": "r", "code": "fencing.name.taken", "title": "Name taken", "detail": "so it is"});
    let host = |host: &Value| {
        let is_taken = host["name"] == "taken";
        let (status, errors) = if is_taken {
            (409, json!([error]))
        } else {
            (201, json!([]))
        };
        json!({"name": host["name"], "status": status, "id": "i", "errors": errors})
    };
    let hosts: Vec<_> = body["hosts"].as_array().unwrap().iter().map(host).collect();
    json!({ "hosts": hosts })
}

fn import(service: &Service, file: &str, text: &str, more: &[&str]) -> crate::rig::Run {
    let machine = Machine::with(service);
    let path = machine.home().join(file);
    fs::write(&path, text).unwrap();
    machine.run(&[&["host", "import", path.to_str().unwrap()], more].concat())
}

const CSV: &str = "\
name,segment,zone,type,parameters.bmc.ip,parameters.bmc.lan.port
c1,default,,,192.0.2.1,
c2,rack-1,z2,blade,192.0.2.2,623
# a remark
c3,,,,,
";

#[test]
fn hosts_are_imported_from_a_table_and_existing_hosts_are_unchanged() {
    let service = with_hosts();
    let run = import(&service, "hosts.csv", CSV, &[]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.out.contains("added: 2, updated: 0, present: 1"), "{run:?}");
    let posted = service.asked().pop().unwrap();
    assert_eq!(posted.line, "POST /bulk/hosts");
    let expected = json!({
        "name": "c2", "segment": "rack-1", "zone": "z2", "type": "blade",
        "parameters": {"bmc": {"ip": "192.0.2.2"}, "bmc.lan": {"port": "623"}},
    });
    assert_eq!(posted.body, json!({"hosts": [expected, {"name": "c3"}]}));
}

#[test]
fn hosts_in_yaml_keep_the_text_of_numbers() {
    let text = "\
- name: c1
  zone: z9
- name: c2
  segment: rack-1
  type:
  parameters:
    bmc: {ip: 192.0.2.2, port: 0623, ratio: 1.10, on: yes}
";
    let service = with_hosts();
    let run = import(&service, "hosts.yaml", text, &["-o", "json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let told = run.json();
    assert_eq!((&told["added"], &told["differs"]), (&json!(1), &json!(1)));
    assert_eq!(
        told["hosts"][0],
        json!({"name": "c1", "line": 1, "result": "differs", "detail": "zone"})
    );
    let posted = service.asked().pop().unwrap();
    let expected = json!({"name": "c2", "segment": "rack-1",
        "parameters": {"bmc": {"ip": "192.0.2.2", "port": "0623", "ratio": "1.10", "on": "yes"}}});
    assert_eq!(posted.body["hosts"], json!([expected]));
}

#[test]
fn an_import_with_update_changes_only_the_values_of_the_file() {
    let service = with_hosts();
    let text = "name,zone,parameters.bmc.port\nc1,z9,623\n";
    let dry = import(&service, "hosts.csv", text, &["--update", "--dry-run"]);
    assert_eq!(dry.code, 0, "{dry:?}");
    assert!(dry.out.contains("would be updated: 1"), "{dry:?}");
    assert!(service.lines().iter().all(|line| line.starts_with("GET ")));
    let run = import(&service, "hosts.csv", text, &["--update"]);
    assert_eq!(run.code, 0, "{run:?}");
    let patch = service.asked().pop().unwrap();
    assert_eq!(
        (patch.line.as_str(), patch.header("if-match")),
        ("PATCH /hosts/c1", Some("\"7\""))
    );
    assert_eq!(
        patch.body,
        json!({"zone": "z9", "parameters": {"bmc": {"ip": "192.0.2.1", "port": "623"}}})
    );
}

#[test]
fn every_error_of_a_file_is_reported_with_its_line_and_nothing_is_sent() {
    let text = "\
name,segment,backend,parameters.bmc.password,colour
c2,rack-1,vmware,,
,default,none,,
c3,default,none,hush,
c2,nowhere,none,,
c4,default
";
    let service = with_hosts();
    let run = import(&service, "hosts.csv", text, &[]);
    assert_eq!(run.code, 2, "{run:?}");
    for part in [
        "line 1: the column \"colour\" is not known",
        "line 2: backend: is \"vmware\"; nova, kubernetes, none is allowed",
        "line 3: name: is missing",
        "line 4: parameters.bmc.password: is a secret",
        "line 5: name: \"c2\" stands in line 2 already",
        "line 6: has 2 fields, and the heading has 5",
    ] {
        assert!(run.err.contains(part), "{part} in {}", run.err);
    }
    assert!(!run.err.contains("hush"), "{}", run.err);
    assert!(service.lines().is_empty());
    // Problems that only the service knows are found before anything is changed.
    let run = import(
        &service,
        "hosts.csv",
        "name,segment\nc2,rack-1\nc3,nowhere\n",
        &[],
    );
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.err
            .contains("line 3: segment: is \"nowhere\", and there is no such segment"),
        "{}",
        run.err
    );
    assert!(service.lines().iter().all(|line| line.starts_with("GET ")));
    for (file, text, part) in [
        (
            "h.yaml",
            "- name: c1\n  colour: red\n",
            "line 1: \"colour\" is not known",
        ),
        ("h.yaml", "- name: c1\n- name: [\n", "line 2: is no list of hosts"),
        ("h.yaml", "name: c1\n", "is no list of hosts"),
        ("h.csv", "", "the heading has no column name"),
        ("h.csv", "name\n", "holds no host"),
    ] {
        let run = import(&service, file, text, &[]);
        assert_eq!(run.code, 2, "{text:?}: {run:?}");
        assert!(run.err.contains(part), "{part} in {}", run.err);
    }
}

#[test]
fn a_refused_host_does_not_stop_the_import_of_others() {
    let service = with_hosts();
    let run = import(&service, "hosts.csv", "name\ntaken\nc2\n", &[]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.out.contains("Name taken: so it is"), "{run:?}");
    assert!(
        run.out.contains("added: 1, updated: 0, present: 0, failed: 1"),
        "{run:?}"
    );
    assert!(run.err.contains("1 hosts were not imported"), "{run:?}");
}

/// The service first has too many requests, and then cannot write for a moment.
#[test]
fn an_import_waits_as_long_as_the_service_asks_and_repeats_its_request() {
    let service = Service::start(|number, asked| {
        if asked.line.starts_with("GET ") {
            return Reply::json(200, &json!({"hosts": [], "segments": [], "links": []}));
        }
        let fault = |title: &str| json!({"errors": [{"title": title, "detail": "later"}]});
        match number {
            2 => Reply::json(429, &fault("Too many requests")).with("Retry-After: 1"),
            3 => Reply::json(503, &fault("Database unavailable")).with("Retry-After: 0"),
            _ => Reply::json(200, &added(&asked.body)),
        }
    });
    let run = import(&service, "hosts.csv", "name\nc2\nc3\n", &[]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.out.contains("added: 2"), "{run:?}");
    for waited in [
        "Too many requests: the service asks to wait; the next try of 9 is in 1 s",
        "Database unavailable: the service asks to wait; the next try of 8 is in 0 s",
    ] {
        assert!(run.err.contains(waited), "{waited} in {}", run.err);
    }
    let posted: Vec<_> = service
        .asked()
        .into_iter()
        .filter(|asked| asked.line.starts_with("POST "))
        .collect();
    assert_eq!(posted.len(), 3);
    for again in &posted {
        assert_eq!(again.body, posted[0].body);
        assert_eq!(
            again.header("idempotency-key"),
            posted[0].header("idempotency-key")
        );
        assert!(again.header("idempotency-key").is_some());
    }
}

#[test]
fn many_hosts_are_sent_in_few_requests_and_only_problems_are_shown() {
    let service = with_hosts();
    let names: String = (0..2_500).map(|number| format!("n{number}\n")).collect();
    let run = import(&service, "hosts.csv", &format!("name\ntaken\n{names}"), &[]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.out.contains("added: 2500, updated: 0, present: 0, failed: 1"),
        "{}",
        run.out
    );
    assert!(
        run.out.contains("Name taken: so it is") && !run.out.contains("n77"),
        "{}",
        run.out
    );
    assert!(
        run.err.contains("2500 hosts are not shown; -o json shows all"),
        "{}",
        run.err
    );
    let posted: Vec<_> = service
        .asked()
        .into_iter()
        .filter(|asked| asked.line.starts_with("POST "))
        .collect();
    let each: Vec<_> = posted
        .iter()
        .map(|asked| asked.body["hosts"].as_array().unwrap().len())
        .collect();
    assert_eq!(each, [1_000, 1_000, 501]);
    assert_ne!(
        posted[0].header("idempotency-key"),
        posted[1].header("idempotency-key")
    );
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
