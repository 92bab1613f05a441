//! Fencing, confirming and rejoining.

use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::rig::Machine;
use crate::service::{Reply, Service};

fn host(fencing_state: &str) -> Value {
    json!({
        "id": "h1", "name": "compute1", "segment": "default", "backend": "none", "zone": "default", "parameters": {},
        "failure_state": "UNREACHABLE", "fencing_state": fencing_state, "generation": 4, "operation": null,
        "proofs": [{"kind": "power.off", "source": "bmc", "observed_at": "2026-01-31T12:00:00Z", "detail": ""}],
    })
}

fn operation(status: &str, attempts: &Value, proofs: &Value) -> Value {
    let task = if status == "running" { "running" } else { "failed" };
    json!({
        "id": "op1", "host_id": "h1", "host": "compute1", "kind": "fence", "status": status, "generation": 4,
        "detail": if status == "running" { "" } else { "every level of power.off failed" }, "proofs": proofs,
        "stages": [{"delay_s": 0, "tasks": [{"kind": "power.off", "status": task, "attempts": attempts}]}],
    })
}

fn running() -> Value {
    operation("running", &json!([]), &json!([]))
}

const FENCE: [&str; 5] = ["host", "fence", "compute1", "--reason", "it hangs"];

fn waiting<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&FENCE, ["--wait"].as_slice(), more].concat()
}

#[test]
fn fence_with_wait_ends_with_fenced_and_its_proof() {
    let service = Service::start(|number, asked| match (number, asked.line.as_str()) {
        (_, "POST /hosts/compute1/fence") => Reply::json(202, &running()),
        (0..=2, "GET /operations/op1") => Reply::json(200, &running()),
        (_, "GET /operations/op1") => Reply::json(
            200,
            &operation(
                "running",
                &json!([]),
                &json!([{"kind": "power.off", "source": "bmc"}]),
            ),
        ),
        (_, "GET /hosts/h1") => Reply::json(200, &host("FENCED")),
        (_, line) => panic!("{line}"),
    });
    let run = Machine::with(&service).run(&waiting(&[]));
    assert_eq!(
        (run.code, run.out.as_str()),
        (0, "compute1: FENCED (proven by power.off by bmc)\n"),
        "{}",
        run.err
    );
    assert!(run.err.contains("power.off          running"), "{}", run.err);
    let first = &service.asked()[0];
    assert_eq!(first.body, json!({"reason": "it hangs"}));
    assert_eq!(first.header("x-auth-token"), Some("rf_test"));
}

#[test]
fn fence_of_a_fenced_host_does_not_wait() {
    let service = Service::start(|_, _| Reply::json(200, &host("FENCED")));
    let run = Machine::with(&service).run(&waiting(&["--output", "json"]));
    assert_eq!(run.code, 0);
    assert_eq!(run.json()["fencing_state"], "FENCED");
    assert_eq!(run.err, "");
    let run = Machine::with(&service).run(&waiting(&[]));
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.out.starts_with("compute1: FENCED"), "{run:?}");
    assert_eq!(run.err, "the host already was in this state: nothing was begun\n");
}

#[test]
fn an_insufficient_proof_is_not_shown_as_fenced() {
    let service = Service::start(|number, asked| match asked.line.as_str() {
        "POST /hosts/compute1/fence" => Reply::json(202, &running()),
        "GET /operations/op1" => {
            let status = if number < 4 { "running" } else { "needs_operator" };
            Reply::json(
                200,
                &operation(
                    status,
                    &json!([]),
                    &json!([{"kind": "storage.fence", "source": "san"}]),
                ),
            )
        }
        _ => Reply::json(200, &host("UNFENCED")),
    });
    let run = Machine::with(&service).run(&waiting(&[]));
    assert_eq!(run.code, 5);
    assert!(!run.out.contains("FENCED"), "{}", run.out);
    assert!(
        run.err
            .contains("needs an operator: every level of power.off failed"),
        "{}",
        run.err
    );
    assert!(
        run.err.contains("ringfence host confirm compute1 --generation 4"),
        "{}",
        run.err
    );
}

#[test]
fn an_older_fence_is_not_shown_as_this_one() {
    let service = Service::start(|_, asked| match asked.line.as_str() {
        "POST /hosts/compute1/fence" => Reply::json(202, &running()),
        "GET /operations/op1" => Reply::json(200, &operation("cancelled", &json!([]), &json!([]))),
        _ => {
            let mut host = host("FENCED");
            host["generation"] = json!(3);
            Reply::json(200, &host)
        }
    });
    assert_eq!(Machine::with(&service).run(&waiting(&[])).code, 5);
}

#[test]
fn an_operation_continues_after_the_timeout_of_the_command() {
    let service = Service::start(|_, asked| {
        let status = if asked.line.starts_with("POST") { 202 } else { 200 };
        Reply::json(status, &running())
    });
    let run = Machine::with(&service).run(&waiting(&["--timeout", "1s"]));
    assert_eq!(run.code, 8);
    assert!(run.err.contains("ringfence operation watch op1"), "{}", run.err);
}

#[test]
fn a_command_waits_for_a_service_that_restarts() {
    let service = Service::start(|number, asked| match (number, asked.line.as_str()) {
        (_, "POST /hosts/compute1/fence") => Reply::json(202, &running()),
        (1, _) => Reply::error(503, "fencing.database.unavailable", "the database is away"),
        (_, "GET /operations/op1") => Reply::json(200, &operation("succeeded", &json!([]), &json!([]))),
        _ => Reply::json(200, &host("FENCED")),
    });
    let run = Machine::with(&service).run(&waiting(&[]));
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.err.contains("the service does not answer; trying again"),
        "{}",
        run.err
    );
}

#[test]
fn refusals_have_exit_codes_of_their_own_and_show_the_services_message() {
    let cases = [
        (409, "fencing.host.up", 3),
        (404, "fencing.host.not_found", 4),
        (401, "fencing.unauthorized", 7),
        (403, "fencing.forbidden", 7),
        (400, "fencing.request.invalid", 2),
    ];
    for (status, code, exit) in cases {
        let service = Service::start(move |_, _| Reply::error(status, code, "because of this"));
        let run = Machine::with(&service).run(&FENCE);
        assert_eq!(run.code, exit, "{run:?}");
        assert!(
            run.err
                .contains(&format!("No: because of this\n  {code}, {status}, request req-1")),
            "{}",
            run.err
        );
        let run = Machine::with(&service).run(&[FENCE.as_slice(), &["-o", "json"]].concat());
        let answer: Value = serde_json::from_str(&run.err).unwrap();
        assert_eq!(answer["errors"][0]["code"], code);
    }
}

#[test]
fn an_unreachable_service_is_named_with_the_command_to_start_one() {
    let machine = Machine::new().set("RINGFENCE_URL", "http://127.0.0.1:9");
    let run = machine.run(&FENCE);
    assert_eq!(run.code, 6);
    assert!(
        run.err.contains("http://127.0.0.1:9/ cannot be reached"),
        "{}",
        run.err
    );
    let run = Machine::new().run(&FENCE);
    assert_eq!(run.code, 6);
    assert!(run.err.contains("ringfence standalone --demo"), "{}", run.err);
}

#[test]
fn a_person_is_asked_unless_yes_was_given() {
    let service = Service::start(|_, asked| {
        Reply::json(
            200,
            &host(if asked.line.starts_with("POST") {
                "FENCED"
            } else {
                "UNFENCED"
            }),
        )
    });
    let machine = Machine::with(&service);
    let words = [
        "host",
        "confirm",
        "compute1",
        "--generation",
        "4",
        "--reason",
        "pulled the plugs",
    ];
    let run = machine.run(&words);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("--yes"), "{}", run.err);
    assert!(
        service.lines().iter().all(|line| line.starts_with("GET")),
        "nothing was confirmed"
    );
    let run = machine.run(&[words.as_slice(), &["--yes"]].concat());
    assert_eq!(run.code, 0, "{run:?}");
    let body = service.asked().pop().unwrap().body;
    assert_eq!(
        body,
        json!({"generation": 4, "reason": "pulled the plugs", "override_up": false})
    );
}

const CONFIRM: [&str; 8] = [
    "host",
    "confirm",
    "compute1",
    "--generation",
    "4",
    "-r",
    "pulled the plugs",
    "--yes",
];

#[test]
fn a_confirmation_that_has_not_settled_is_not_shown_as_fenced() {
    let service = Service::start(|_, _| Reply::json(200, &settling()));
    let run = Machine::with(&service).run(&CONFIRM);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(
        run.out,
        "compute1: still UNFENCED; the confirmation is recorded, and the host becomes FENCED when the confirmation has settled\n"
    );
    assert!(run.err.contains("ringfence operation watch op1"), "{}", run.err);
}

#[test]
fn confirm_with_wait_ends_with_fenced() {
    let won = json!([{"kind": "operator", "source": "anna"}]);
    let service = Service::start(move |number, asked| match (number, asked.line.as_str()) {
        (_, "POST /hosts/compute1/confirm-fenced") => Reply::json(200, &settling()),
        (_, "GET /operations/op1") => Reply::json(200, &operation("running", &json!([]), &won)),
        (0..=2, _) => Reply::json(200, &settling()),
        _ => Reply::json(200, &host("FENCED")),
    });
    let run = Machine::with(&service).run(&[CONFIRM.as_slice(), &["--wait"]].concat());
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.out.starts_with("compute1: FENCED"), "{}", run.out);
}

/// A host whose fence is proven, and has not settled.
fn settling() -> Value {
    let mut host = host("UNFENCED");
    host["operation"] = json!({"id": "op1", "kind": "fence", "status": "running"});
    host
}

const REJOIN: [&str; 6] = ["host", "rejoin", "compute1", "--wait", "-r", "repaired"];
const NOT_UP: &str = "waiting: the host is UNREACHABLE, not UP";

/// A rejoin that has switched the power on and waits for the host.
fn rejoining(status: &str, detail: &str) -> Value {
    json!({
        "id": "op1", "host_id": "h1", "host": "compute1", "kind": "rejoin", "status": status, "generation": 5,
        "detail": detail, "proofs": [],
        "stages": [
            {"delay_s": 0, "tasks": [{"kind": "power.on", "status": "confirmed", "attempts": []}]},
            {"delay_s": 0, "tasks": [{"kind": "workloads.clean-up", "status": "pending", "attempts": []}]},
        ],
    })
}

/// A service whose host is never seen UP.
fn never_up() -> Service {
    Service::start(|_, asked| {
        let status = if asked.line.starts_with("POST") { 202 } else { 200 };
        Reply::json(status, &rejoining("running", NOT_UP))
    })
}

#[test]
fn a_rejoin_shows_what_it_waits_for_during_the_wait_and_at_the_timeout() {
    let service = never_up();
    let run = Machine::with(&service).run(&[REJOIN.as_slice(), &["--timeout", "1s"]].concat());
    assert_eq!(run.code, 8, "{run:?}");
    let (waited, end) = run.err.split_once("error: ").unwrap();
    assert_eq!(waited.matches(NOT_UP).count(), 1, "told once: {}", run.err);
    assert_eq!(
        end,
        format!(
            "the time is up, and operation op1 goes on\n  {NOT_UP}\n  follow it with: ringfence operation watch op1\n"
        )
    );
}

#[test]
fn a_rejoin_that_is_stopped_by_ctrl_c_shows_what_it_waits_for() {
    let service = never_up();
    let machine = Machine::with(&service);
    let mut command = machine.command(&REJOIN);
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The command waits once it has read the operation.
    while service.lines().len() < 3 {
        std::thread::yield_now();
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    kill(pid, Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(
        err.contains(&format!(
            "stopped by Ctrl-C, and operation op1 goes on\n  {NOT_UP}\n"
        )) && err.contains("ringfence operation watch op1"),
        "{err}"
    );
}

#[test]
fn a_rejoin_that_needs_an_operator_shows_the_reason() {
    let why = "power.on failed: every level failed; last bmc: refused; the host is UNREACHABLE, not UP";
    let service = Service::start(move |_, asked| {
        let status = if asked.line.starts_with("POST") { 202 } else { 200 };
        let stands = if asked.line.starts_with("POST") {
            "running"
        } else {
            "needs_operator"
        };
        Reply::json(status, &rejoining(stands, why))
    });
    let run = Machine::with(&service).run(&REJOIN);
    assert_eq!(run.code, 5, "{run:?}");
    let told = format!("error: the rejoin of compute1 needs an operator: {why}\n");
    assert!(run.err.contains(&told), "{}", run.err);
}

#[test]
fn rejoin_with_wait_ends_with_unfenced() {
    let service = Service::start(|_, asked| match asked.line.as_str() {
        "POST /hosts/compute1/rejoin" => Reply::json(202, &running()),
        "GET /operations/op1" => Reply::json(200, &operation("succeeded", &json!([]), &json!([]))),
        _ => Reply::json(200, &host("UNFENCED")),
    });
    let run = Machine::with(&service).run(&[
        "host", "rejoin", "compute1", "--booted", "--wait", "-r", "repaired",
    ]);
    assert_eq!(
        (run.code, run.out.as_str()),
        (0, "compute1: UNFENCED\n"),
        "{}",
        run.err
    );
    assert_eq!(
        service.asked()[0].body,
        json!({"reason": "repaired", "boot_confirmed": true})
    );
}

#[test]
fn a_dry_run_shows_the_outcome_of_a_fence_and_has_its_exit_code() {
    let told = |outcome: &str, status: u16| {
        let gate = json!({"allowed": false, "reason": "the host is not FENCED"});
        let gates = json!({"schedule": gate, "evacuate": gate, "generation": 4});
        json!({
            "host": host("UNFENCED"), "gates": gates, "waits_for": null,
            "seen": {"failure_state": "UP", "source": "nagios", "because": "a source says UP"},
            "fence": {
                "verdict": {"outcome": outcome, "status": status, "code": null, "detail": "the host is seen UP"},
                "storm_brake": {
                    "is_automatic": false, "reason": null, "hosts": 6, "out_of_service": 1, "lately": 1, "at_most": 5,
                    "within_s": 600, "at_most_percent": 40,
                },
            },
        })
    };
    let dry_run = [&FENCE, ["--dry-run"].as_slice()].concat();
    let service = Service::start(move |_, _| Reply::json(200, &told("refused", 409)));
    let run = Machine::with(&service).run(&dry_run);
    assert_eq!(run.code, 3, "{run:?}");
    assert!(
        run.out.starts_with("a fence    refused: the host is seen UP"),
        "{run:?}"
    );
    assert!(
        run.err
            .contains("the fence would be refused: the host is seen UP"),
        "{run:?}"
    );
    let asked = service.asked();
    assert_eq!(asked[0].line, "POST /hosts/compute1/fence");
    assert_eq!(asked[0].body, json!({"reason": "it hangs", "dry_run": true}));

    let service = Service::start(move |_, _| Reply::json(200, &told("started", 202)));
    let run = Machine::with(&service).run(&[&dry_run, ["--output", "json"].as_slice()].concat());
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(run.json()["fence"]["verdict"]["outcome"], "started");
    let run = Machine::with(&service).run(&[&dry_run, ["--wait"].as_slice()].concat());
    assert_eq!(run.code, 2, "{run:?}");
}
