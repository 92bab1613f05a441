//! Hosts from a file.

use std::fs;

use serde_json::{Value, json};

use super::host;
use crate::rig::Machine;
use crate::service::{Reply, Service};

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
