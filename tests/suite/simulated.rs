//! What a simulation says, and what then really comes of it.

use ringfence_api::Role;
use ringfence_tests::{Ground, Machine, Run, Site, Stack, StackOptions, now, power_plan};
use serde_json::{Value, json};

crate::on_both_grounds!(a_simulation_and_what_comes_of_it_agree);

/// Six hosts, three of which are members of an etcd.
async fn with_members(ground: Ground) -> Stack {
    let options = StackOptions {
        hosts: 6,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    for host in ["h1", "h2", "h3"] {
        let labels = json!({ "labels": { "etcd": "main" } });
        stack
            .client
            .patch(&format!("/hosts/{host}"), labels)
            .await
            .ok(200);
    }
    stack.plan(power_plan()).await;
    stack.observe().await;
    let fencing = json!({
        "automatic": true, "after_s": 1, "at_most": 3, "at_most_percent": 100,
        "groups": [{ "label": "etcd", "majority": true }],
    });
    stack
        .client
        .set_default_policy(json!({ "fencing": fencing }))
        .await
        .ok(200);
    stack
}

/// Runs `ringfence policy simulate` with these words.
async fn simulate(machine: &Machine, words: &[&str]) -> Run {
    machine.run(&[&["policy", "simulate"], words].concat()).await
}

fn of<'a>(outcome: &'a Value, host: &str) -> &'a Value {
    let mut hosts = outcome["hosts"].as_array().unwrap().iter();
    hosts.find(|known| known["host"] == host).unwrap()
}

/// What there is: hosts, operations, events.
async fn all_there_is(stack: &Stack) -> Value {
    let mut all = Vec::new();
    for path in ["/hosts", "/operations", "/events", "/segments", "/plans"] {
        all.push(stack.client.get(path).await.ok(200));
    }
    Value::Array(all)
}

async fn a_simulation_and_what_comes_of_it_agree(ground: Ground) {
    let stack = with_members(ground).await;
    let reader = stack.as_role(Role::Reader);
    let machine = Machine::new()
        .set("RINGFENCE_URL", reader.base())
        .set("RINGFENCE_TOKEN", reader.token().unwrap());
    refuses_what_it_cannot_simulate(&machine).await;

    let before = all_there_is(&stack).await;
    let words = [
        "--silent",
        "h1,h2,h4,h5",
        "--every",
        "30s",
        "--for",
        "5m",
        "--takes",
        "1s",
    ];
    let table = simulate(&machine, &words).await;
    assert!(
        table.code == Some(0) && table.out.contains("operation.held"),
        "{table:?}"
    );
    let simulated = simulate(&machine, &[&words[..], &["-o", "json"]].concat())
        .await
        .json();
    assert_eq!(all_there_is(&stack).await, before, "a simulation changes nothing");

    let begun_at = now();
    for (host, end) in [
        ("h1", "FENCED"),
        ("h2", "held"),
        ("h4", "FENCED"),
        ("h5", "needs_operator"),
    ] {
        stack.hang(host).await;
        if end == "FENCED" {
            stack.client.until_fenced(host).await;
        } else {
            let path = format!("/operations?host={host}&status={end}");
            let is_there = |list: &Value| list["operations"].as_array().unwrap().len() == 1;
            let real = stack.client.until(&path, is_there).await;
            assert_eq!(
                of(&simulated, host)["end"]["detail"],
                real["operations"][0]["detail"],
                "{host}"
            );
        }
        stack.judge(host).await;
    }
    for (host, word, by) in [
        ("h1", "fenced", json!(null)),
        ("h2", "held", json!(["quorum"])),
        ("h4", "fenced", json!(null)),
        ("h5", "needs_operator", json!(null)),
    ] {
        let told = of(&simulated, host);
        assert_eq!(
            (&told["end"]["word"], &told["waits"][0]["by"]),
            (&json!(word), &by),
            "{told}"
        );
    }

    // The incident again: under the policy as it is it ends as it did, and under another one otherwise.
    let since = begun_at.to_rfc3339();
    let again = [
        "--events-from",
        &since,
        "--takes",
        "1s",
        "--for",
        "5m",
        "-o",
        "json",
    ];
    let recorded = simulate(&machine, &again).await.json();
    for host in ["h1", "h2", "h4", "h5"] {
        let (told, first) = (of(&recorded, host), of(&simulated, host));
        assert_eq!(told["end"]["word"], first["end"]["word"], "{told}");
        let fences = told["recorded_fenced_at"].as_array().unwrap().len();
        assert_eq!(fences, told["fenced_at"].as_array().unwrap().len(), "{told}");
    }
    let free = "name: default\npolicy:\n  settle_s: 0\n  fencing:\n    automatic: true\n    after_s: 1\n    at_most_percent: 100\n";
    std::fs::write(machine.file("free.yaml"), free).unwrap();
    let otherwise = simulate(&machine, &[&again[..], &["--policy", "free.yaml"]].concat())
        .await
        .json();
    for (host, recorded) in [("h1", 1), ("h2", 0), ("h4", 1), ("h5", 0)] {
        let told = of(&otherwise, host);
        assert_eq!(told["end"]["word"], "fenced", "{told}");
        assert_eq!(
            told["recorded_fenced_at"].as_array().unwrap().len(),
            recorded,
            "{told}"
        );
    }
    let events = machine
        .run(&["event", "list", "--after", "0", "--limit", "1000", "-o", "json"])
        .await;
    std::fs::write(machine.file("events.json"), events.out).unwrap();
    let words = [
        "--events-file",
        "events.json",
        "--events-from",
        &since,
        "--takes",
        "1s",
        "--for",
        "5m",
        "-o",
        "json",
    ];
    let of_file = simulate(&machine, &words).await.json();
    assert_eq!(of(&of_file, "h2")["end"]["word"], "held");
    stack.stop().await;
}

async fn refuses_what_it_cannot_simulate(machine: &Machine) {
    let faulty = "name: default\npolicy:\n  fencing:\n    after_s: 9999\n";
    std::fs::write(machine.file("faulty.yaml"), faulty).unwrap();
    std::fs::write(machine.file("other.yaml"), "name: rack-9\n").unwrap();
    for (words, code, why) in [
        (
            &["--silent", "h9"][..],
            2,
            "--silent: is \"h9\", and there is no such host; h1, h2, h3, h4, h5, h6 are allowed",
        ),
        (
            &["--silent-label", "etcd=west"],
            2,
            "--silent-label: is \"etcd=west\", and no host has this label; etcd=main is allowed",
        ),
        (
            &["--silent-segment", "rack-9"],
            2,
            "--silent-segment: is \"rack-9\", and there is no such segment; default is allowed",
        ),
        (
            &["--silent", "h1", "--back", "h1"],
            2,
            "a time is missing; NAME@TIME is allowed, as in c1@10m",
        ),
        (
            &["--silent", "h1@2h", "--for", "1h"],
            2,
            "--for: is 3600 s, and something happens after 7200 s",
        ),
        (
            &["--silent", "h1", "--failing", "bmc"],
            2,
            "--failing: is \"bmc\", and there is no such method that acts on devices; network, power, storage are allowed",
        ),
        (
            &["--silent", "h1", "--policy", "faulty.yaml"],
            2,
            "faulty.yaml:4:14: policy.fencing.after_s: is 9999; 0 to 3600 is allowed",
        ),
        (
            &["--silent", "h1", "--policy", "other.yaml"],
            2,
            "other.yaml: names segment \"rack-9\", and there is none of this name; default is allowed",
        ),
        (
            &[
                "--events-from",
                "2020-01-01T00:00:00Z",
                "--events-to",
                "2020-01-02T00:00:00Z",
            ],
            4,
            "no event that the service keeps from 2020-01-01",
        ),
        (
            &["--events-from", "yesterday"],
            2,
            "--events-from: is \"yesterday\"; a time such as",
        ),
        (&[], 2, "required"),
    ] {
        let run = simulate(machine, words).await;
        assert!(
            run.code == Some(code) && run.err.contains(why),
            "{words:?}: {run:?}"
        );
    }
}
