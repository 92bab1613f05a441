//! Many hosts at once: they share transactions, and each is decided as if it were alone.

use futures_util::future::join_all;
use ringfence_core::Resource;
use ringfence_simulators::{Fault, FaultKind};
use ringfence_tests::{Answer, Ground, Site, Stack, StackOptions};
use serde_json::json;

crate::on_both_grounds!(
    hosts_that_are_fenced_together_are_decided_separately,
    many_concurrent_fences_of_one_host_are_one_operation,
    no_list_shows_a_fenced_host_without_its_proofs,
);

async fn stack(ground: Ground, hosts: usize) -> Stack {
    let options = StackOptions {
        hosts,
        engines: 2,
        workers: 2,
        attempt_timeout_s: 3,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    stack
        .plan(json!([{ "tasks": [
            { "kind": "power.off", "levels": [{ "level": 1, "methods": ["power"] }] },
            { "kind": "storage.fence", "levels": [{ "level": 1, "methods": ["storage"] }] },
        ] }]))
        .await;
    stack
}

async fn hosts_that_are_fenced_together_are_decided_separately(ground: Ground) {
    const HOSTS: usize = 24;
    let stack = stack(ground, HOSTS).await;
    let name = |number: usize| format!("h{number}");
    let is_up = |number: usize| number.is_multiple_of(4);
    let lies = |number: usize| number % 6 == 1;
    for number in 1..=HOSTS {
        if is_up(number) {
            stack.client.seen(&name(number), "UP").await.ok(200);
        } else {
            stack.hang(&name(number)).await;
        }
        if lies(number) {
            let never = Fault::forever(FaultKind::Refuse);
            stack.set_fault(&name(number), Resource::Power, Some(never));
        }
    }
    // An unknown host is among them.
    let asked = (0..=HOSTS).map(async |number| {
        let path = format!("/hosts/h{number}/fence");
        stack.client.post(&path, json!({ "reason": "together" })).await
    });
    let answers: Vec<Answer> = join_all(asked).await;
    for (number, answer) in answers.into_iter().enumerate() {
        let expected = match number {
            0 => (404, "fencing.host.not_found"),
            number if is_up(number) => (409, "fencing.host.up"),
            _ => (202, ""),
        };
        assert_eq!((answer.status, answer.code()), expected, "h{number}");
        if answer.status != 202 {
            continue;
        }
        let settled = stack.client.until_settled(&answer.body).await;
        let expected = if lies(number) {
            "needs_operator"
        } else {
            "succeeded"
        };
        assert_eq!(settled["status"], expected, "h{number}: {settled}");
        assert_eq!(settled["host"], name(number));
    }
    for number in 1..=HOSTS {
        let host = stack.client.host(&name(number)).await;
        let is_fenced = !is_up(number) && !lies(number);
        assert_eq!(host["fencing_state"] == "FENCED", is_fenced, "{host}");
        stack.judge(&name(number)).await;
        let numbers = stack
            .client
            .get(&format!("/events?host=h{number}&limit=1000"))
            .await
            .ok(200);
        let numbers: Vec<_> = numbers["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["host_sequence"].as_u64().unwrap())
            .collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    }
    stack.stop().await;
}

async fn many_concurrent_fences_of_one_host_are_one_operation(ground: Ground) {
    let stack = stack(ground, 2).await;
    for host in ["h1", "h2"] {
        stack.hang(host).await;
    }
    let asked = (0..40).map(|number| {
        let path = format!("/hosts/h{}/fence", number % 2 + 1);
        let client = stack.client.clone();
        async move { client.post(&path, json!({ "reason": "again" })).await }
    });
    let mut operations: Vec<String> = join_all(asked)
        .await
        .into_iter()
        // 200: the host was FENCED when the request came.
        .filter(|answer| answer.status != 200)
        .map(|answer| answer.ok(202)["id"].as_str().unwrap().to_owned())
        .collect();
    operations.sort_unstable();
    operations.dedup();
    assert_eq!(operations.len(), 2);
    for host in ["h1", "h2"] {
        stack.client.until_fenced(host).await;
        assert_eq!(stack.client.host(host).await["generation"], 1);
    }
    stack.stop().await;
}

/// Lists are read all the time while hosts turn FENCED.
async fn no_list_shows_a_fenced_host_without_its_proofs(ground: Ground) {
    const HOSTS: usize = 12;
    let stack = stack(ground, HOSTS).await;
    let client = &stack.client;
    for number in 1..=HOSTS {
        stack.hang(&format!("h{number}")).await;
        client.fence(&format!("h{number}")).await;
    }
    let mut fenced = 0;
    while fenced < HOSTS {
        fenced = 0;
        let list = client.get("/hosts").await.ok(200);
        for host in list["hosts"].as_array().unwrap() {
            let (is_fenced, proofs) = (
                host["fencing_state"] == "FENCED",
                host["proofs"].as_array().unwrap(),
            );
            assert_eq!(is_fenced, !proofs.is_empty(), "{host}");
            assert_eq!(is_fenced, !host["fenced_at"].is_null(), "{host}");
            fenced += usize::from(is_fenced);
        }
    }
    stack.stop().await;
}
