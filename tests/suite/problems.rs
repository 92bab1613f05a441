//! What happens to hosts is counted, and told where it comes too often.

use ringfence_tests::{Behaviour, Ground, Numbers, Receiver, Stack, eventually, power_plan};
use serde_json::{Value, json};

use crate::metrics::numbers_of;
use crate::subscriptions::subscribe;

crate::on_both_grounds!(a_host_that_is_fenced_twice_is_counted_listed_and_told_of_once);

/// The host dies, and is fenced.
async fn dies(stack: &Stack) {
    stack.hang("h1").await;
    let fence = stack.client.fence("h1").await;
    stack.client.until_settled(&fence).await;
}

/// The names of the hosts that pass a filter.
async fn listed(stack: &Stack, filter: &str) -> Vec<Value> {
    let list = stack.client.get(&format!("/hosts?{filter}")).await.ok(200);
    let hosts = list["hosts"].as_array().unwrap();
    hosts.iter().map(|host| host["name"].clone()).collect()
}

fn counts(of: &Value) -> Value {
    json!([of["failed"], of["fenced"], of["returned"], of["conditions"]])
}

async fn a_host_that_is_fenced_twice_is_counted_listed_and_told_of_once(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    stack.client.post("/hosts", json!({ "name": "h2" })).await.ok(201);
    let receiver = Receiver::start(Behaviour::Takes);
    let filter = json!({ "types": ["host.alarm_began", "host.alarm_ended"] });
    subscribe(&stack, "alarms", &receiver, filter).await;
    let alarm = json!({ "problem": "fenced", "times": 2, "within_s": 3600 });
    let sick = json!({ "problem": "condition", "condition": "KernelDeadlock", "times": 1, "within_s": 3600 });
    let policy = json!({
        "auto_rejoin": true, "quarantine": { "fences": 2, "within_s": 3600 }, "alarms": [alarm],
        "conditions": [{ "condition": "KernelDeadlock" }],
    });
    stack.client.set_default_policy(policy).await.ok(200);
    let before = numbers_of(&stack).await;
    let segment = "segment=\"default\"";
    let fenced = [segment, "problem=\"fenced\""];
    assert!(before.has("ringfence_host_problems_total"));
    assert_eq!(before.sum("ringfence_host_problems_total", &fenced), 0.0);

    dies(&stack).await;
    let monitor = stack.client.keep_seeing("h1");
    stack.client.until_unfenced("h1").await;
    drop(monitor);
    let once = stack.client.get("/hosts/h1/problems?window_s=3600").await.ok(200);
    assert_eq!(counts(&once), json!([1, 1, 1, {}]), "{once}");
    assert_eq!(once["alarms"], json!([]));
    assert_eq!(listed(&stack, "quarantined=true").await, Vec::<Value>::new());

    dies(&stack).await;
    let deadlock = json!({ "source": "npd", "conditions": [{ "name": "KernelDeadlock", "status": "True", "reason": "hung" }] });
    stack.client.put("/hosts/h1/conditions", deadlock).await.ok(200);
    let twice = stack.client.get("/hosts/h1/problems").await.ok(200);
    assert_eq!(
        counts(&twice),
        json!([2, 2, 1, { "KernelDeadlock": 1 }]),
        "{twice}"
    );
    let [standing] = &twice["alarms"].as_array().unwrap()[..] else {
        panic!("{twice}");
    };
    assert_eq!(
        (&standing["problem"], &standing["times"]),
        (&json!("fenced"), &json!(2))
    );
    assert!(twice["quarantined_at"].is_string(), "{twice}");
    assert_eq!(stack.client.host("h1").await["alarms"], twice["alarms"]);

    let list = stack.client.get("/problems?segment=default").await.ok(200);
    let [host] = &list["problems"].as_array().unwrap()[..] else {
        panic!("{list}");
    };
    assert_eq!((&host["host"], &host["problems"]), (&json!("h1"), &json!(5)));
    assert_eq!(counts(host), counts(&twice));
    assert_eq!(counts(&list["total"]), counts(&twice));
    for flag in ["quarantined", "alarmed"] {
        assert_eq!(listed(&stack, &format!("{flag}=true")).await, ["h1"]);
        assert_eq!(listed(&stack, &format!("{flag}=false")).await, ["h2"]);
    }

    // An alarm is told once when it begins, and once when its segment has it no more.
    let without =
        json!({ "auto_rejoin": true, "conditions": [{ "condition": "KernelDeadlock" }], "alarms": [sick] });
    stack.client.set_default_policy(without).await.ok(200);
    eventually(async || receiver.taken().len() >= 2).await;
    let told: Vec<Value> = receiver
        .taken()
        .iter()
        .map(|event| {
            json!([
                event["data"]["type"],
                event["data"]["data"]["problem"],
                event["data"]["data"]["count"]
            ])
        })
        .collect();
    let expected = [
        json!(["host.alarm_began", "fenced", 2]),
        json!(["host.alarm_ended", "fenced", 0]),
    ];
    assert_eq!(told, expected);
    assert_eq!(listed(&stack, "alarmed=true").await, Vec::<Value>::new());

    // The engine has counted what it committed, and the API what it did.
    let both = async |metric: &str, labels: &[&str]| {
        let api = Numbers::of(&stack.client).await;
        api.sum(metric, labels) + numbers_of(&stack).await.sum(metric, labels)
    };
    eventually(async || both("ringfence_host_problems_total", &fenced).await >= 2.0).await;
    assert_eq!(both("ringfence_host_problems_total", &fenced).await, 2.0);
    assert_eq!(both("ringfence_host_alarms_total", &fenced).await, 1.0);
    assert_eq!(
        both(
            "ringfence_host_conditions_total",
            &["condition=\"KernelDeadlock\""]
        )
        .await,
        1.0
    );
    stack.stop().await;
}
