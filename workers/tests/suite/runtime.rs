//! The worker between the bus and its drivers.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

use ringfence_bus::{Bus, ClaimReply, ClaimRequest, DeadLetters};
use ringfence_core::{ObservedState, Outcome, SecretReference};

use crate::engine::{Engine, Flaky, granted, keys, method_of, refused, task, tasks};
use crate::scripted::{Does, Scripted};
use crate::seconds;

const AT_ONCE: Does = Does::Succeeds(Duration::ZERO);

pub async fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the condition did not become true in time");
}

fn only_claims(engine: &Engine) -> Vec<ClaimRequest> {
    engine
        .claims()
        .into_iter()
        .filter(|claim| matches!(claim, ClaimRequest::Claim(_)))
        .collect()
}

#[tokio::test]
async fn a_task_is_claimed_carried_out_and_reported_with_its_claim() {
    let mut engine = Engine::start(|_| Some(granted(5000))).await;
    let driver = Scripted::new(AT_ONCE);
    let worker = engine.worker(driver.clone(), 4).await;
    engine.send(&task(1, "a")).await;
    let result = engine.result().await;
    assert_eq!(result.outcome, Outcome::Confirmed);
    assert_eq!(result.observation.unwrap().state, ObservedState::Off);
    assert_eq!(only_claims(&engine), [ClaimRequest::Claim(result.claim.clone())]);
    assert_eq!(
        (result.claim.worker.as_str(), result.claim.attempt),
        ("w1", task(1, "a").attempt)
    );
    assert_eq!(driver.acts(), ["a"]);
    assert_eq!(worker.metrics().confirmed, 1);
    worker.shutdown(seconds(5)).await;
}

#[tokio::test]
async fn a_worker_with_a_refused_claim_never_acts_and_drops_the_task() {
    let mut engine = Engine::start(|_| Some(refused("it has ended"))).await;
    let driver = Scripted::new(AT_ONCE);
    let worker = engine.worker(driver.clone(), 4).await;
    engine.send(&task(1, "a")).await;
    until(|| worker.metrics().claims_refused == 1).await;
    assert!(engine.stays_silent().await);
    assert!(driver.acts().is_empty());
    assert_eq!(engine.claims().len(), 1);
    assert_eq!(engine.bus.dead_letter_count().await.unwrap(), 0);
}

#[tokio::test]
async fn a_forged_task_is_counted_becomes_a_dead_letter_and_is_never_carried_out() {
    let mut engine = Engine::start(|_| Some(granted(5000))).await;
    let driver = Scripted::new(AT_ONCE);
    let worker = engine.worker(driver.clone(), 4).await;
    engine.send_signed(&task(1, "a"), &keys(2)).await;
    until(|| worker.metrics().bad_signatures == 1).await;
    assert!(engine.stays_silent().await);
    assert!(driver.acts().is_empty() && engine.claims().is_empty());
    assert_eq!(engine.bus.dead_letter_count().await.unwrap(), 1);
}

#[tokio::test]
async fn a_task_that_is_delivered_twice_is_claimed_twice_and_carried_out_once() {
    let claims = AtomicU32::new(0);
    let mut engine = Engine::start(move |request| match request {
        ClaimRequest::Claim(_) if claims.fetch_add(1, SeqCst) == 0 => Some(granted(5000)),
        _ => Some(refused("another worker has claimed it")),
    })
    .await;
    let driver = Scripted::new(AT_ONCE);
    let worker = engine.worker(driver.clone(), 4).await;
    engine.send(&task(1, "a")).await;
    engine.send(&task(1, "a")).await;
    assert_eq!(engine.result().await.outcome, Outcome::Confirmed);
    until(|| worker.metrics().claims_refused == 1).await;
    assert_eq!(driver.acts().len(), 1);
    let ids: Vec<_> = only_claims(&engine)
        .iter()
        .map(|claim| match claim {
            ClaimRequest::Claim(claim) | ClaimRequest::Renew(claim) => claim.claim_id,
        })
        .collect();
    assert_ne!(ids[0], ids[1], "each delivery has a claim of its own");
}

#[tokio::test]
async fn a_claim_without_an_answer_is_repeated_with_its_id() {
    let asked = AtomicU32::new(0);
    let mut engine = Engine::start(move |_| (asked.fetch_add(1, SeqCst) > 0).then(|| granted(5000))).await;
    let worker = engine.worker(Scripted::new(AT_ONCE), 4).await;
    engine.send(&task(1, "a")).await;
    assert_eq!(engine.result().await.outcome, Outcome::Confirmed);
    let claims = engine.claims();
    assert_eq!(claims.len(), 2);
    assert_eq!(claims[0], claims[1]);
    drop(worker);
}

#[tokio::test]
async fn the_claim_of_a_busy_device_is_repeated() {
    let asked = AtomicU32::new(0);
    let mut engine = Engine::start(move |_| {
        Some(if asked.fetch_add(1, SeqCst) < 3 {
            ClaimReply::Busy { retry_after_ms: 60 }
        } else {
            granted(5000)
        })
    })
    .await;
    let driver = Scripted::new(AT_ONCE);
    let _worker = engine.worker(driver.clone(), 1).await;
    engine.send(&task(1, "a")).await;
    assert_eq!(engine.result().await.outcome, Outcome::Confirmed);
    assert_eq!((engine.claims().len(), driver.acts().len()), (4, 1));
}

#[tokio::test]
async fn a_device_gets_one_command_at_a_time_and_other_devices_do_not_wait() {
    let mut engine = Engine::start(|_| Some(granted(20_000))).await;
    let slow = Scripted::new(Does::Succeeds(Duration::from_millis(300)));
    let _worker = engine.worker(slow.clone(), 8).await;
    for number in 1..=4 {
        engine.send(&task(number, "a")).await;
    }
    for _ in 0..4 {
        engine.result().await;
    }
    assert_eq!(slow.most_at_once(), 1);
    for number in 5..=8 {
        engine.send(&task(number, &format!("b{number}"))).await;
    }
    for _ in 0..4 {
        engine.result().await;
    }
    assert_eq!(slow.most_at_once(), 4);
}

#[tokio::test]
async fn no_more_attempts_run_at_once_than_the_workers_concurrency() {
    let mut engine = Engine::start(|_| Some(granted(20_000))).await;
    let driver = Scripted::new(Does::Succeeds(Duration::from_millis(100)));
    let _worker = engine.worker(driver.clone(), 2).await;
    for number in 1..=6 {
        engine.send(&task(number, &format!("d{number}"))).await;
    }
    for _ in 0..6 {
        assert_eq!(engine.result().await.outcome, Outcome::Confirmed);
    }
    assert_eq!(driver.most_at_once(), 2);
}

#[tokio::test]
async fn a_driver_that_does_not_end_is_stopped_at_the_end_of_the_granted_time() {
    let mut engine = Engine::start(|_| Some(granted(1000))).await;
    let driver = Scripted::new(Does::Hangs);
    let _worker = engine.worker(driver.clone(), 4).await;
    let sent = Instant::now();
    engine.send(&task(1, "a")).await;
    let result = engine.result().await;
    assert!(sent.elapsed() < seconds(3), "{:?}", sent.elapsed());
    assert_eq!(
        (result.outcome, result.detail.as_str()),
        (Outcome::Unknown, "the granted time ran out")
    );
    assert_eq!((driver.at_work(), driver.stopped()), (0, 1));
}

#[tokio::test]
async fn a_driver_that_panics_is_unknown_and_its_device_is_free_again() {
    let mut engine = Engine::start(|_| Some(granted(5000))).await;
    let worker = engine.worker(Scripted::new(Does::Panics), 1).await;
    for number in 1..=2 {
        engine.send(&task(number, "a")).await;
        let result = engine.result().await;
        assert_eq!((result.outcome, result.observation), (Outcome::Unknown, None));
    }
    assert_eq!(worker.metrics().driver_panics, 2);
}

#[tokio::test]
async fn a_success_that_was_not_read_back_is_unknown() {
    let mut engine = Engine::start(|_| Some(granted(5000))).await;
    let _worker = engine.worker(Scripted::new(Does::Boasts), 1).await;
    engine.send(&task(1, "a")).await;
    let result = engine.result().await;
    assert_eq!(result.outcome, Outcome::Unknown);
    assert_eq!(result.detail, "confirmed without reading back off");
}

#[tokio::test]
async fn a_worker_renews_its_lease_and_a_refused_renewal_stops_the_driver() {
    let renewals = AtomicU32::new(0);
    let mut engine = Engine::start(move |request| match request {
        ClaimRequest::Renew(_) if renewals.fetch_add(1, SeqCst) >= 2 => {
            Some(refused("its operation has ended"))
        }
        _ => Some(ClaimReply::Granted {
            budget_ms: 30_000,
            lease_ms: 300,
        }),
    })
    .await;
    let driver = Scripted::new(Does::Hangs);
    let _worker = engine.worker(driver.clone(), 4).await;
    engine.send(&task(1, "a")).await;
    let result = engine.result().await;
    assert_eq!(result.outcome, Outcome::Unknown);
    assert_eq!(
        result.detail,
        "the engine took the attempt back: its operation has ended"
    );
    assert_eq!(
        (driver.at_work(), driver.stopped(), engine.claims().len()),
        (0, 1, 4)
    );
}

#[tokio::test]
async fn an_engine_that_is_away_does_not_stop_a_running_driver() {
    let mut engine = Engine::start(|request| match request {
        ClaimRequest::Claim(_) => Some(ClaimReply::Granted {
            budget_ms: 10_000,
            lease_ms: 300,
        }),
        ClaimRequest::Renew(_) => None,
    })
    .await;
    let _worker = engine.worker(Scripted::new(Does::Succeeds(seconds(1))), 4).await;
    engine.send(&task(1, "a")).await;
    assert_eq!(engine.result().await.outcome, Outcome::Confirmed);
}

#[tokio::test]
async fn the_detail_of_a_driver_is_cut_and_its_secrets_are_masked() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("password");
    std::fs::write(&file, "hunter2\n").unwrap();
    let mut engine = Engine::start(|_| Some(granted(5000))).await;
    let _worker = engine.worker(Scripted::new(Does::Babbles), 1).await;
    let mut babbling = task(1, "a");
    let reference = SecretReference::File(file.to_str().unwrap().to_owned());
    method_of(&mut babbling)
        .secrets
        .insert("password".to_owned(), reference);
    engine.send(&babbling).await;
    let result = engine.result().await;
    let observation = result.observation.unwrap();
    assert!(
        observation.detail.starts_with("I used [secret] x"),
        "{}",
        observation.detail
    );
    assert_eq!(
        (observation.detail.chars().count(), result.detail.chars().count()),
        (1000, 1000)
    );
}

#[tokio::test]
async fn a_missing_secret_is_refused_before_the_driver_runs() {
    let mut engine = Engine::start(|_| Some(granted(5000))).await;
    let driver = Scripted::new(AT_ONCE);
    let _worker = engine.worker(driver.clone(), 1).await;
    let mut secretive = task(1, "a");
    let reference = SecretReference::Env("RINGFENCE_TEST_NO_SUCH_SECRET".to_owned());
    method_of(&mut secretive)
        .secrets
        .insert("password".to_owned(), reference);
    engine.send(&secretive).await;
    let result = engine.result().await;
    assert_eq!(result.outcome, Outcome::Refused);
    assert!(
        result.detail.contains("env:RINGFENCE_TEST_NO_SUCH_SECRET"),
        "{}",
        result.detail
    );
    assert!(driver.acts().is_empty());
}

#[tokio::test]
async fn a_worker_that_is_shut_down_lets_its_attempts_end_and_report() {
    let mut engine = Engine::start(|_| Some(granted(20_000))).await;
    let driver = Scripted::new(Does::Succeeds(Duration::from_millis(500)));
    let worker = engine.worker(driver.clone(), 1).await;
    engine.send(&task(1, "a")).await;
    until(|| driver.at_work() == 1).await;
    worker.shutdown(seconds(10)).await;
    assert_eq!(engine.result().await.outcome, Outcome::Confirmed);
}

#[tokio::test]
async fn a_worker_stops_its_drivers_at_the_end_of_its_shutdown_time_and_reports_it() {
    let mut engine = Engine::start(|_| Some(granted(20_000))).await;
    let driver = Scripted::new(Does::Hangs);
    let worker = engine.worker(driver.clone(), 1).await;
    engine.send(&task(1, "a")).await;
    until(|| driver.at_work() == 1).await;
    worker.shutdown(Duration::from_millis(200)).await;
    let result = engine.result().await;
    assert_eq!(
        (result.outcome, result.detail.as_str()),
        (Outcome::Unknown, "the worker was stopped")
    );
    assert_eq!(driver.at_work(), 0);
}

#[tokio::test]
async fn a_task_of_a_worker_that_died_goes_to_the_next_and_is_refused_there() {
    let claims = AtomicU32::new(0);
    let engine = Engine::start(move |request| match request {
        ClaimRequest::Claim(_) if claims.fetch_add(1, SeqCst) == 0 => Some(granted(20_000)),
        _ => Some(refused("another worker has claimed it")),
    })
    .await;
    let first = Scripted::new(Does::Hangs);
    let worker = engine.worker(first.clone(), 1).await;
    engine.send(&task(1, "a")).await;
    until(|| first.at_work() == 1).await;
    worker.abandon();
    until(|| first.at_work() == 0).await;
    let second = Scripted::new(AT_ONCE);
    let worker = engine.worker(second.clone(), 1).await;
    until(|| worker.metrics().claims_refused == 1).await;
    assert!(second.acts().is_empty());
}

#[tokio::test]
async fn a_task_whose_claim_has_no_answer_returns_to_the_bus() {
    // Without a queue for claims the claim fails at once, which has the effect of silence and takes less time.
    let engine = Engine::absent();
    let driver = Scripted::new(AT_ONCE);
    let worker = engine.worker(driver.clone(), 1).await;
    engine.send(&task(1, "a")).await;
    until(|| worker.metrics().claims_unanswered == 1).await;
    worker.abandon();
    let mut again = engine.bus.consume(&tasks(), 1).await.unwrap();
    let delivery = tokio::time::timeout(seconds(5), again.recv())
        .await
        .unwrap()
        .unwrap();
    assert!(delivery.redelivered);
    assert!(driver.acts().is_empty());
}

#[tokio::test]
async fn a_result_is_published_once_the_engines_are_back() {
    let mut engine = Engine::start(|_| Some(granted(5000))).await;
    let bus = engine.bus.clone();
    let driver = Scripted::new(Does::Succeeds(Duration::from_millis(300)));
    let _worker = engine.worker_on(Flaky::new(bus, 3), driver, 1).await;
    engine.send(&task(1, "a")).await;
    assert_eq!(engine.result().await.outcome, Outcome::Confirmed);
}

#[tokio::test]
async fn a_claim_whose_grant_was_lost_with_the_broker_is_repeated_until_it_is_answered() {
    let mut engine = Engine::start(|_| Some(granted(5000))).await;
    let driver = Scripted::new(AT_ONCE);
    // More lost answers than the number of tries for silent engines.
    let bus = Flaky::losing_answers(engine.bus.clone(), 4);
    let worker = engine.worker_on(bus, driver.clone(), 1).await;
    engine.send(&task(1, "a")).await;
    assert_eq!(engine.result().await.outcome, Outcome::Confirmed);
    let claims = engine.claims();
    assert_eq!(claims.len(), 5, "{claims:?}");
    assert!(claims.iter().all(|claim| *claim == claims[0]), "{claims:?}");
    assert_eq!(driver.acts().len(), 1);
    assert_eq!(worker.metrics().claims_unanswered, 0);
}

#[tokio::test]
async fn a_worker_that_gets_its_grant_too_late_reports_that_nothing_was_done() {
    let asked = AtomicU32::new(0);
    let mut engine = Engine::start(move |_| match asked.fetch_add(1, SeqCst) {
        0 => Some(granted(5000)),
        _ => Some(refused("it has ended")),
    })
    .await;
    let driver = Scripted::new(AT_ONCE);
    let bus = Flaky::losing_answers(engine.bus.clone(), 1);
    let _worker = engine.worker_on(bus, driver.clone(), 1).await;
    engine.send(&task(1, "a")).await;
    let result = engine.result().await;
    assert_eq!(result.outcome, Outcome::Unknown);
    assert!(result.detail.contains("nothing was done"), "{result:?}");
    let ClaimRequest::Claim(claim) = &engine.claims()[0] else {
        panic!("no claim");
    };
    assert_eq!(result.claim, *claim);
    assert!(driver.acts().is_empty());
}
