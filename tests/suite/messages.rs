//! Messages that are forged, late, repeated or out of order.

use std::time::Duration;

use ringfence_bus::{Audience, ClaimReply, ClaimRequest, Key, Keys, Queue, TaskMessage};
use ringfence_core::{
    AttemptId, Claim, Generation, Observation, ObservedState, OperationId, Outcome, Resource, TaskResult,
};
use ringfence_db::{Changes, Database, DeviceLease, Ended, Locking, load_state};
use ringfence_tests::{Ground, Site, Stack, StackOptions, keys, now, power_plan};
use serde_json::json;
use uuid::Uuid;

crate::on_both_grounds!(
    a_forged_result_is_never_believed,
    a_result_of_an_older_generation_changes_nothing,
    a_result_that_arrives_twice_counts_once,
    a_task_that_arrives_twice_is_done_once,
    a_result_that_overtakes_its_claim_changes_nothing,
    a_claim_whose_device_is_leased_to_another_attempt_is_refused,
);

/// A stack without workers whose host is being fenced, and the task's message as a worker gets it.
async fn dispatched(ground: Ground) -> (Stack, TaskMessage) {
    dispatched_in(Stack::start_without_workers(ground).await).await
}

async fn dispatched_in(stack: Stack) -> (Stack, TaskMessage) {
    stack.plan(power_plan()).await;
    let bus = stack.site.bus("worker").await;
    let queue = Queue::Tasks {
        resource: Resource::Power,
        zone: "default".to_owned(),
    };
    let mut tasks = bus.consume(&queue, 1).await.unwrap();
    stack.hang("h1").await;
    stack.client.fence("h1").await;
    let delivery = tasks.recv().await.unwrap();
    let task = keys().open(&Audience::Queue(queue), &delivery.message).unwrap();
    delivery.settle.ack().await.unwrap();
    (stack, task)
}

fn claim_of(task: &TaskMessage) -> Claim {
    Claim {
        host_id: task.host_id,
        attempt: task.attempt,
        generation: task.generation,
        kind: task.job.kind(),
        worker: "by-hand".to_owned(),
        claim_id: Uuid::new_v4(),
    }
}

fn confirmed(claim: &Claim) -> TaskResult {
    let observation = Observation {
        state: ObservedState::Off,
        detail: "off".to_owned(),
        observed_at: chrono::DateTime::UNIX_EPOCH,
        after_ms: 0,
        before: None,
        proves: true,
    };
    TaskResult {
        claim: claim.clone(),
        outcome: Outcome::Confirmed,
        observation: Some(observation),
        finding: None,
        detail: String::new(),
    }
}

async fn ask(stack: &Stack, claim: &Claim) -> ClaimReply {
    let bus = stack.site.bus("worker").await;
    let id = Uuid::new_v4();
    let question = keys()
        .seal(
            id,
            &Audience::Queue(Queue::Claims),
            &ClaimRequest::Claim(claim.clone()),
        )
        .unwrap();
    let answer = bus
        .request(&Queue::Claims, &question, Duration::from_secs(10))
        .await
        .unwrap();
    keys().open(&Audience::Reply(id), &answer).unwrap()
}

async fn report(stack: &Stack, keys: &Keys, result: &TaskResult) {
    let bus = stack.site.bus("worker").await;
    let message = keys
        .seal(Uuid::new_v4(), &Audience::Queue(Queue::Results), result)
        .unwrap();
    bus.publish(&Queue::Results, &message).await.unwrap();
}

async fn a_forged_result_is_never_believed(ground: Ground) {
    let (stack, task) = dispatched(ground).await;
    let claim = claim_of(&task);
    assert!(matches!(ask(&stack, &claim).await, ClaimReply::Granted { .. }));
    let forger = Keys::new(vec![Key::new("test", &[8; 32]).unwrap()]).unwrap();
    report(&stack, &forger, &confirmed(&claim)).await;
    // The honest result behind the forged one is taken: by then the forged one has been refused.
    let mut honest = confirmed(&claim);
    honest.outcome = Outcome::Unknown;
    honest.observation = None;
    report(&stack, &keys(), &honest).await;
    let operations = stack.client.until("/operations?host=h1", |list| {
        list["operations"][0]["stages"][0]["tasks"][0]["attempts"][0]["outcome"] == "unknown"
    });
    operations.await;
    assert_eq!(stack.client.host("h1").await["fencing_state"], "UNFENCED");
    stack.stop().await;
}

async fn a_result_of_an_older_generation_changes_nothing(ground: Ground) {
    let (stack, task) = dispatched(ground).await;
    let old = claim_of(&task);
    assert!(matches!(ask(&stack, &old).await, ClaimReply::Granted { .. }));
    let operation = task.attempt.operation_id;
    stack
        .client
        .post(
            &format!("/operations/{operation}/cancel"),
            json!({ "reason": "test" }),
        )
        .await
        .ok(200);
    let new = stack.client.fence("h1").await;
    assert_eq!(new["generation"], 2);
    report(&stack, &keys(), &confirmed(&old)).await;
    stack.until_audited("h1", "result.ignored").await;
    // This result under the new generation names an attempt that the new operation does not have.
    let mut disguised = confirmed(&old);
    disguised.claim.generation = Generation(2);
    report(&stack, &keys(), &disguised).await;
    stack.until_audited_times("h1", "result.ignored", 2).await;
    assert_eq!(stack.client.host("h1").await["fencing_state"], "UNFENCED");
    stack.stop().await;
}

async fn a_result_that_arrives_twice_counts_once(ground: Ground) {
    let (stack, task) = dispatched(ground).await;
    let claim = claim_of(&task);
    assert!(matches!(ask(&stack, &claim).await, ClaimReply::Granted { .. }));
    for _ in 0..3 {
        report(&stack, &keys(), &confirmed(&claim)).await;
    }
    stack.client.until_fenced("h1").await;
    stack.until_audited_times("h1", "result.ignored", 2).await;
    let types = stack.client.event_types("h1").await;
    assert_eq!(types.iter().filter(|kind| *kind == "host.fenced").count(), 1);
    stack.stop().await;
}

async fn a_task_that_arrives_twice_is_done_once(ground: Ground) {
    let (stack, task) = dispatched(ground).await;
    let first = claim_of(&task);
    let second = claim_of(&task);
    assert!(matches!(ask(&stack, &first).await, ClaimReply::Granted { .. }));
    assert!(matches!(ask(&stack, &second).await, ClaimReply::Refused { .. }));
    // A repeated claim is granted again: its first answer may have been lost.
    assert!(matches!(ask(&stack, &first).await, ClaimReply::Granted { .. }));
    report(&stack, &keys(), &confirmed(&second)).await;
    stack.until_audited("h1", "result.ignored").await;
    assert_eq!(stack.client.host("h1").await["fencing_state"], "UNFENCED");
    report(&stack, &keys(), &confirmed(&first)).await;
    stack.client.until_fenced("h1").await;
    stack.stop().await;
}

async fn a_result_that_overtakes_its_claim_changes_nothing(ground: Ground) {
    let (stack, task) = dispatched(ground).await;
    let claim = claim_of(&task);
    report(&stack, &keys(), &confirmed(&claim)).await;
    stack.until_audited("h1", "result.ignored").await;
    assert_eq!(stack.client.host("h1").await["fencing_state"], "UNFENCED");
    stack.stop().await;
}

/// A queue that was purged, or a broker that came back without its messages. While workers take other tasks from the queue, a task
/// counts as waiting for its turn, for minutes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_the_broker_has_lost_is_sent_again_soon_while_its_queue_is_consumed() {
    let options = StackOptions {
        workers: 0,
        hosts: 2,
        ..StackOptions::default()
    };
    let site = Site::new(Ground::Distributed).await;
    let (mut stack, _) = dispatched_in(Stack::start_with(site, options).await).await;
    stack.add_worker().await;
    stack.hang("h2").await;
    stack.client.fence("h2").await;
    stack.client.until_fenced("h2").await;
    let fenced = stack.client.until_fenced("h1").await;
    stack.judge("h1").await;
    let operation = stack.client.get("/operations?host=h1&limit=1").await.ok(200);
    let attempts = &operation["operations"][0]["stages"][0]["tasks"][0]["attempts"];
    assert_eq!(attempts.as_array().unwrap().len(), 2, "{attempts} {fenced}");
    stack.stop().await;
}

/// The worker did not get the grant of its claim, and repeats the claim when the device is leased to another attempt.
async fn a_claim_whose_device_is_leased_to_another_attempt_is_refused(ground: Ground) {
    let (stack, task) = dispatched(ground).await;
    let claim = claim_of(&task);
    assert!(matches!(ask(&stack, &claim).await, ClaimReply::Granted { .. }));
    lease_device_to_another_attempt(stack.api.db(), &claim).await;
    let reply = ask(&stack, &claim).await;
    assert!(
        matches!(&reply, ClaimReply::Refused { why } if why.contains("waits for no device")),
        "{reply:?}"
    );
    stack.until_audited("h1", "claim.refused").await;
    stack.stop().await;
}

/// Leases the device to an attempt of another operation.
async fn lease_device_to_another_attempt(db: &Database, claim: &Claim) {
    let host = load_state(&mut db.reader(), &claim.host_id.to_string()).await;
    let operation = host.unwrap().unwrap().operation.unwrap();
    let (task, attempt) = operation.find(claim.attempt).unwrap();
    let device = task.method_of(attempt).unwrap().device.clone().unwrap();
    let other = DeviceLease {
        device,
        attempt: AttemptId {
            operation_id: OperationId(Uuid::new_v4()),
            number: 1,
        },
        from: now(),
        until: now() + chrono::TimeDelta::seconds(60),
    };
    let given = [
        Changes {
            released: vec![claim.attempt],
            ..Changes::default()
        },
        Changes {
            leases: vec![other],
            ..Changes::default()
        },
    ];
    for changes in given {
        let begun = db
            .begin_with_hosts(&[claim.host_id], Locking::Pessimistic)
            .await
            .unwrap();
        let ended = begun.transaction.commit(&changes).await.unwrap();
        assert!(matches!(ended, Ended::Committed { .. }), "{ended:?}");
    }
}
