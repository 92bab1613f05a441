//! The verdict of a dry run, and the answer to the fence that follows.

use ringfence_core::Resource;
use ringfence_simulators::{Fault, FaultKind};
use ringfence_tests::{Ground, Stack, power_plan};
use serde_json::{Value, json};

use super::{checked, explain, reason, until_checks, with_hosts};

crate::on_both_grounds!(
    the_verdict_of_a_dry_run_is_the_answer_to_the_fence,
    a_device_that_two_hosts_share_is_named_in_the_verdict,
);

/// The verdict, and the answer to the real request.
async fn verdict_then_fence(stack: &Stack, host: &str, if_match: Option<&str>) -> (Value, Value) {
    let ask = |is_dry_run| {
        let request = stack
            .client
            .request(reqwest::Method::POST, &format!("/hosts/{host}/fence"))
            .json(&reason(is_dry_run));
        match if_match {
            Some(tag) => request.header("If-Match", tag),
            None => request,
        }
    };
    let told = stack.client.send(ask(true)).await.ok(200)["fence"].clone();
    let answer = stack.client.send(ask(false)).await;
    let verdict = &told["verdict"];
    assert_eq!(verdict["status"], answer.status, "{verdict} and {}", answer.body);
    if answer.status >= 400 {
        let error = &answer.body["errors"][0];
        for part in ["code", "title", "detail"] {
            assert_eq!(verdict[part], error[part], "{verdict} and {error}");
        }
        assert_eq!(verdict["outcome"], "refused");
        assert_eq!(told["gates_once_fenced"], Value::Null);
        assert_eq!(told["begins_with"], json!([]));
    }
    (told, answer.body)
}

async fn the_verdict_of_a_dry_run_is_the_answer_to_the_fence(ground: Ground) {
    let stack = with_hosts(ground, 4).await;
    let code = |told: &Value| told["verdict"]["code"].as_str().unwrap_or_default().to_owned();
    let (told, _) = verdict_then_fence(&stack, "h1", None).await;
    assert_eq!(code(&told), "fencing.plan.missing");
    assert_eq!(told["plan"], Value::Null);

    stack.plan(power_plan()).await;
    let wrong = json!({ "parameters": { "power": { "speed": "9" } } });
    stack.client.patch("/hosts/h1", wrong).await.ok(200);
    let (told, _) = verdict_then_fence(&stack, "h1", None).await;
    assert_eq!(code(&told), "fencing.plan.broken");
    let method = &told["plan"]["stages"][0]["tasks"][0]["levels"][0]["methods"][0];
    assert_eq!(
        (&method["name"], &method["driver"]),
        (&json!("power"), &Value::Null)
    );
    let why = method["hindrances"][0].as_str().unwrap();
    assert!(why.contains("parameters.speed"), "{method}");
    assert_eq!(told["sufficient_sets"][0]["can_be_completed"], false);

    stack.client.seen("h2", "UP").await.ok(200);
    let (told, _) = verdict_then_fence(&stack, "h2", None).await;
    assert_eq!(code(&told), "fencing.host.up");
    stack.hang("h2").await;
    let (told, _) = verdict_then_fence(&stack, "h2", Some("\"1\"")).await;
    assert_eq!(code(&told), "fencing.revision.changed");

    let (told, operation) = verdict_then_fence(&stack, "h2", None).await;
    assert_eq!(told["verdict"]["outcome"], "started");
    assert_eq!(
        told["begins_with"],
        json!([{ "kind": "power.off", "by": "power" }])
    );
    assert_eq!(told["plan"]["scope"]["kind"], "default");
    let parameters = &told["plan"]["stages"][0]["tasks"][0]["levels"][0]["methods"][0]["parameters"];
    assert_eq!(parameters["device"], "h2");
    stack.client.until_settled(&operation).await;
    let (told, host) = verdict_then_fence(&stack, "h2", None).await;
    assert_eq!(told["verdict"]["outcome"], "already_fenced");
    assert_eq!(host["fencing_state"], "FENCED");

    // A fence that cannot be proven waits for a person, and is joined.
    let refuses = Some(Fault::forever(FaultKind::Refuse));
    stack.set_fault("h3", Resource::Power, refuses);
    stack.hang("h3").await;
    let live = stack.client.fence("h3").await;
    stack.client.until_settled(&live).await;
    let explained = explain(&stack, "h3").await;
    assert!(
        explained["waits_for"]
            .as_str()
            .unwrap()
            .starts_with("no sufficient set was completed"),
        "{explained}"
    );
    let (told, operation) = verdict_then_fence(&stack, "h3", None).await;
    assert_eq!(told["verdict"]["outcome"], "joined");
    assert_eq!(told["verdict"]["operation_id"], operation["id"]);

    // A fence takes the place of a rejoin.
    stack.hang("h4").await;
    let fence = stack.client.fence("h4").await;
    stack.client.until_settled(&fence).await;
    let rejoin = stack
        .client
        .post("/hosts/h4/rejoin", json!({ "reason": "test" }))
        .await
        .ok(202);
    let (told, _) = verdict_then_fence(&stack, "h4", None).await;
    assert_eq!(told["verdict"]["outcome"], "started");
    assert_eq!(
        told["supersedes"],
        json!({ "id": rejoin["id"], "kind": "rejoin" })
    );

    // An error of the request itself is not a verdict.
    for is_dry_run in [true, false] {
        let unknown = stack.client.post("/hosts/h9/fence", reason(is_dry_run)).await;
        assert_eq!((unknown.status, unknown.code()), (404, "fencing.host.not_found"));
        let body = json!({ "reason": " ", "dry_run": is_dry_run });
        let blank = stack.client.post("/hosts/h1/fence", body).await;
        assert_eq!((blank.status, blank.code()), (400, "fencing.request.invalid"));
    }
    stack.stop().await;
}

async fn a_device_that_two_hosts_share_is_named_in_the_verdict(ground: Ground) {
    let stack = checked(ground, 2).await;
    stack.plan(power_plan()).await;
    let slip = json!({ "parameters": { "power": { "device": "h1" } } });
    stack.client.patch("/hosts/h2", slip).await.ok(200);
    until_checks(&stack, "power", |checks| {
        checks["failing"] == 2 && checks["outcome"] == "refused"
    })
    .await;
    stack.hang("h2").await;
    let (told, _) = verdict_then_fence(&stack, "h2", None).await;
    assert_eq!(told["verdict"]["code"], "fencing.plan.broken");
    let why = told["sufficient_sets"][0]["proofs"][0]["hindrances"][0]
        .as_str()
        .unwrap();
    assert!(
        why.starts_with("method power: ") && why.contains("for host h1"),
        "{told}"
    );
    stack.stop().await;
}
