//! Changes of one host that are a transaction of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringfence_core::{FencingState, Host, ProofKind};
use ringfence_db::{
    AuditFilter, Database, DbError, DeviceClaim, EventRow, HostWrite, KeyName, LoneChange, SeenHost,
    append_audit_lines, append_events, claim_devices, claim_devices_or_end, events_after, host_row,
    insert_key, insert_operations, lock_host, number_events, operation, put_receipt_or_end, release_devices,
    save_proofs, see_host, update_hosts,
};
use serde_json::json;
use tokio::time::timeout;
use uuid::Uuid;

use crate::audit::{actions, line};
use crate::events::{announced, assert_per_host_order, number_until, read_until};
use crate::rig::Rig;
use crate::site::{
    add_hosts, assert_refused, at, attempt, done, event, fence, fenced, one_host, proof, update_host,
};

async fn seen(db: &Database, host: &Host) -> SeenHost {
    let seen = see_host(&mut db.reader_by_keys(), &host.name).await.unwrap();
    seen.unwrap()
}

async fn alone(db: &Database, host: &Host) -> LoneChange {
    LoneChange::upon(&seen(db, host).await).unwrap()
}

/// Writes the host as it is, and tells of it.
async fn tell(change: &mut LoneChange, host: &Host, events: std::ops::RangeInclusive<u64>) {
    let write = HostWrite {
        host,
        known: None,
        wake_at: Some(at(7)),
    };
    update_hosts(change, &[write]).await.unwrap();
    let events: Vec<_> = events.map(|nth| event(host, nth)).collect();
    append_events(change, &events).await.unwrap();
}

async fn events(db: &Database) -> Vec<EventRow> {
    events_after(&mut db.reader(), 0, None, 100).await.unwrap()
}

async fn numbers(db: &Database) -> Vec<(u64, u64)> {
    let events = events(db).await;
    let numbers = events
        .iter()
        .map(|row| (row.sequence, row.event.host.as_ref().unwrap().sequence));
    numbers.collect()
}

fn claim(device: &str, of: u32) -> DeviceClaim {
    DeviceClaim {
        device: device.to_owned(),
        attempt: attempt(of),
        until: at(30),
    }
}

fn is_changed<T>(result: Result<T, DbError>) -> bool {
    matches!(result, Err(DbError::Changed))
}

#[tokio::test]
async fn it_is_committed_with_all_that_rests_on_it_and_its_events_are_numbered_and_announced() {
    let rig = Rig::postgresql().await;
    let (_, host) = one_host(&rig.db).await;
    let mut announcements = rig.another().await.announcements().await.unwrap().unwrap();
    let mut change = alone(&rig.db, &host).await;
    let operation = done(&fence(&host, 1));
    let won = proof(&operation, ProofKind::PowerOff);
    let fenced = fenced(&host, &operation, &[ProofKind::PowerOff]);
    let write = HostWrite {
        host: &fenced,
        known: None,
        wake_at: None,
    };
    insert_operations(&mut change, &[&operation]).await.unwrap();
    save_proofs(&mut change, &[(host.id, &won)]).await.unwrap();
    update_hosts(&mut change, &[write]).await.unwrap();
    append_events(&mut change, &[event(&host, 1), event(&host, 2), event(&host, 3)])
        .await
        .unwrap();
    let lines = ["one", "two", "three"].map(line);
    append_audit_lines(&mut change, &lines).await.unwrap();
    assert!(change.commit(&rig.db).await.unwrap().is_numbered);

    let read = host_row(&mut rig.db.reader(), &host.name).await.unwrap().unwrap();
    assert_eq!(read.host, fenced);
    assert_eq!(numbers(&rig.db).await, [(1, 1), (2, 2), (3, 3)]);
    assert_eq!(
        actions(&rig, &AuditFilter::default()).await,
        ["three", "two", "one"]
    );
    announced(&mut announcements).await;
    drop(announcements);
    rig.end().await;
}

#[tokio::test]
async fn it_does_not_come_about_if_the_host_was_changed_since_it_was_seen() {
    let rig = Rig::postgresql().await;
    let (_, host) = one_host(&rig.db).await;
    let mut late = alone(&rig.db, &host).await;
    // The very same row, written again.
    update_host(&mut rig.db.reader(), &host, None).await.unwrap();
    tell(&mut late, &host, 1..=1).await;
    insert_operations(&mut late, &[&fence(&host, 1)]).await.unwrap();
    assert!(is_changed(late.commit(&rig.db).await));
    assert_eq!(numbers(&rig.db).await, []);
    let state = seen(&rig.db, &host).await.state;
    assert_eq!(state.operation, None);

    let mut upon_nothing = alone(&rig.db, &host).await;
    tell(&mut upon_nothing, &host, 1..=1).await;
    ringfence_db::delete_host(&mut rig.db.reader(), host.id)
        .await
        .unwrap();
    assert!(is_changed(upon_nothing.commit(&rig.db).await));
    rig.end().await;
}

#[tokio::test]
async fn it_does_not_come_about_after_the_time_that_it_was_decided_for() {
    let rig = Rig::postgresql().await;
    let (_, host) = one_host(&rig.db).await;
    let read_at = seen(&rig.db, &host).await.read_at.unwrap();
    let lag = rig.db.now().await.unwrap() - read_at;
    assert!(
        lag >= chrono::TimeDelta::zero() && lag < chrono::TimeDelta::seconds(60),
        "{lag}"
    );
    for (after_s, is_refused) in [(-1, true), (60, false)] {
        let mut change = alone(&rig.db, &host).await;
        change.not_after(read_at + chrono::TimeDelta::seconds(after_s));
        tell(&mut change, &host, 1..=1).await;
        assert_eq!(is_changed(change.commit(&rig.db).await), is_refused, "{after_s}");
    }
    assert_eq!(numbers(&rig.db).await, [(1, 1)]);
    rig.end().await;
}

#[tokio::test]
async fn it_waits_for_whoever_has_locked_the_host_and_heeds_what_that_one_has_changed() {
    let rig = Rig::postgresql().await;
    let (_, host) = one_host(&rig.db).await;
    for is_changed_meanwhile in [false, true] {
        let mut change = alone(&rig.db, &host).await;
        let mut tx = rig.db.begin().await.unwrap();
        lock_host(&mut tx, host.id).await.unwrap().unwrap();
        let events = seen(&rig.db, &host).await.state.host.event_sequence;
        let next = Host {
            event_sequence: events + 1,
            ..host.clone()
        };
        tell(&mut change, &next, events + 1..=events + 1).await;
        let db = rig.db.clone();
        let waiting = tokio::spawn(async move { change.commit(&db).await });
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!waiting.is_finished());
        if is_changed_meanwhile {
            update_host(&mut tx, &next, Some(at(1))).await.unwrap();
        }
        tx.commit().await.unwrap();
        assert_eq!(is_changed(waiting.await.unwrap()), is_changed_meanwhile);
    }
    assert_eq!(numbers(&rig.db).await, [(1, 1)]);
    rig.end().await;
}

#[tokio::test]
async fn it_does_not_come_about_without_the_devices_and_the_receipt_that_it_needs() {
    let rig = Rig::postgresql().await;
    let (_, host) = one_host(&rig.db).await;
    let taken = claim_devices(&mut rig.db.reader(), vec![claim("bmc-2", 9)], at(0)).await;
    assert_eq!(taken.unwrap().len(), 1);

    let mut both = alone(&rig.db, &host).await;
    claim_devices_or_end(&mut both, vec![claim("bmc-2", 1), claim("bmc-1", 1)], at(1));
    tell(&mut both, &host, 1..=1).await;
    assert!(is_changed(both.commit(&rig.db).await));

    let name = KeyName {
        caller: "alice",
        key: "7f0c1a52",
    };
    let (holder, other) = (Uuid::new_v4(), Uuid::new_v4());
    insert_key(&mut rig.db.reader(), name, "digest", holder, at(0), at(60))
        .await
        .unwrap();
    let mut spent = alone(&rig.db, &host).await;
    put_receipt_or_end(&mut spent, name, other, json!({"host": 1}));
    tell(&mut spent, &host, 1..=1).await;
    assert!(is_changed(spent.commit(&rig.db).await));
    assert_eq!(numbers(&rig.db).await, []);

    let mut free = alone(&rig.db, &host).await;
    claim_devices_or_end(&mut free, vec![claim("bmc-1", 1)], at(1));
    put_receipt_or_end(&mut free, name, holder, json!({"host": 1}));
    free.commit(&rig.db).await.unwrap();
    let again = claim_devices(&mut rig.db.reader(), vec![claim("bmc-1", 2)], at(2)).await;
    assert!(again.unwrap().is_empty(), "the device is the first one's");
    let mut back = alone(&rig.db, &host).await;
    release_devices(&mut back, &[attempt(1)]).await.unwrap();
    back.commit(&rig.db).await.unwrap();
    let again = claim_devices(&mut rig.db.reader(), vec![claim("bmc-1", 2)], at(2)).await;
    assert_eq!(again.unwrap().len(), 1);
    rig.end().await;
}

#[tokio::test]
async fn a_rule_of_the_database_ends_it_whole() {
    let rig = Rig::postgresql().await;
    let (_, host) = one_host(&rig.db).await;
    let mut change = alone(&rig.db, &host).await;
    let begun = fence(&host, 1);
    insert_operations(&mut change, &[&begun]).await.unwrap();
    let without_proof = HostWrite {
        host: &fenced(&host, &begun, &[ProofKind::PowerOff]),
        known: None,
        wake_at: None,
    };
    update_hosts(&mut change, &[without_proof]).await.unwrap();
    assert_refused(change.commit(&rig.db).await);
    let left = operation(&mut rig.db.reader(), begun.id.0).await.unwrap();
    assert_eq!(left, None);
    let state = seen(&rig.db, &host).await.state;
    assert_eq!(state.host.fencing_state(), FencingState::Unfenced);
    rig.end().await;
}

#[tokio::test]
async fn its_events_wait_for_their_numbers_while_earlier_ones_do_or_somebody_else_gives_some() {
    let rig = Rig::postgresql().await;
    let (_, host) = one_host(&rig.db).await;
    append_events(&mut rig.db.reader(), &[event(&host, 1)])
        .await
        .unwrap();
    let mut change = alone(&rig.db, &host).await;
    tell(&mut change, &host, 2..=2).await;
    assert!(!change.commit(&rig.db).await.unwrap().is_numbered);
    assert_eq!(numbers(&rig.db).await, []);
    assert_eq!(number_events(&rig.db).await.unwrap(), 2);
    assert_eq!(numbers(&rig.db).await, [(1, 1), (2, 2)]);

    let numbering = rig.hold("SELECT pg_advisory_xact_lock(7411938025476)").await;
    let mut change = alone(&rig.db, &host).await;
    tell(&mut change, &host, 3..=3).await;
    let written = timeout(Duration::from_secs(20), change.commit(&rig.db)).await;
    assert!(!written.expect("it does not wait").unwrap().is_numbered);
    drop(numbering);
    assert_eq!(number_events(&rig.db).await.unwrap(), 1);
    assert_eq!(numbers(&rig.db).await, [(1, 1), (2, 2), (3, 3)]);
    rig.end().await;
}

/// Changes a host so many times, now by a statement, now by a transaction; tells how many statements came about.
async fn change_often(db: Database, host: Host, times: u64) -> u64 {
    let mut statements = 0;
    for nth in 1..=times {
        let next = Host {
            event_sequence: nth,
            ..host.clone()
        };
        if nth % 3 > 0 {
            let mut change = alone(&db, &host).await;
            tell(&mut change, &next, nth..=nth).await;
            change.commit(&db).await.unwrap();
            statements += 1;
            continue;
        }
        let mut tx = db.begin().await.unwrap();
        lock_host(&mut tx, host.id).await.unwrap().unwrap();
        update_host(&mut tx, &next, None).await.unwrap();
        append_events(&mut tx, &[event(&next, nth)]).await.unwrap();
        tx.commit().await.unwrap();
    }
    statements
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_misses_nothing_of_statements_and_transactions_side_by_side() {
    const TIMES: u64 = 40;
    let rig = Rig::postgresql().await;
    let (segment, _) = one_host(&rig.db).await;
    let hosts = add_hosts(&mut rig.db.reader(), &segment, &["a", "b", "c", "d", "e"]).await;
    let expected = hosts.len() * usize::try_from(TIMES).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let reader = tokio::spawn(read_until(rig.db.clone(), expected));
    let numberer = tokio::spawn(number_until(rig.db.clone(), Arc::clone(&stop)));
    let changers = hosts
        .into_iter()
        .map(|host| tokio::spawn(change_often(rig.db.clone(), host, TIMES)));
    for changer in changers.collect::<Vec<_>>() {
        assert!(changer.await.unwrap() > TIMES / 2);
    }
    stop.store(true, Ordering::SeqCst);
    numberer.await.unwrap();
    let seen = timeout(Duration::from_secs(30), reader).await;
    assert_per_host_order(&seen.expect("the reader missed events").unwrap());
    rig.end().await;
}

#[tokio::test]
async fn sqlite_takes_the_long_way() {
    let rig = Rig::sqlite().await;
    let (_, host) = one_host(&rig.db).await;
    assert!(LoneChange::upon(&seen(&rig.db, &host).await).is_none());
    rig.end().await;
}
