//! Transactions that change hosts: all or nothing, and each of their ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringfence_core::{FencingState, Host, HostId, ProofKind};
use ringfence_db::{
    AuditFilter, Begun, Changes, Database, Ended, KeyName, Locking, NewReceipt, NotHad, append_events,
    events_after, host_row, insert_key, key_row, load_state, lock_host, number_events, operation, see_host,
};
use serde_json::json;
use tokio::time::timeout;
use uuid::Uuid;

use crate::audit::{actions, line};
use crate::devices::{lease, release, wanted};
use crate::events::{announced, assert_per_host_order, number_until, read_until};
use crate::outbox::message;
use crate::rig::Rig;
use crate::site::{
    add_hosts, assert_refused, at, attempt, commit, done, event, fence, fenced, insert_operation, one_host,
    proof, update_host, whole,
};

crate::stories!(transactions:
    a_fence_with_its_proof_and_events_is_written_at_once,
    many_hosts_are_written_in_one_transaction,
    a_new_operation_replaces_the_superseded_one,
    the_end_of_an_attempt_ends_its_leases,
    one_refused_change_refuses_all_changes_of_the_transaction,
    a_commit_without_its_device_or_key_changes_nothing_and_names_it,
    an_empty_commit_succeeds,
    an_unknown_host_is_left_out,
);

const HOW: [Locking; 2] = [Locking::Optimistic, Locking::Pessimistic];
const COMMITTED: fn(&Ended) -> bool = |ended| matches!(ended, Ended::Committed { .. });

async fn begin(db: &Database, host: &Host, locking: Locking) -> Begun {
    let begun = db.begin_with_hosts(&[host.id], locking).await.unwrap();
    assert_eq!(begun.hosts.len(), 1);
    begun
}

/// A proven fence, with its events and audit lines.
struct Fenced {
    operation: ringfence_core::Operation,
    won: ringfence_core::Proof,
    host: Host,
}

impl Fenced {
    fn of(host: &Host) -> Self {
        let operation = done(&fence(host, 1));
        Self {
            won: proof(&operation, ProofKind::PowerOff),
            host: fenced(host, &operation, &[ProofKind::PowerOff]),
            operation,
        }
    }

    fn changes<'a>(of: impl IntoIterator<Item = &'a Self>) -> Changes<'a> {
        let mut changes = Changes::default();
        for fenced in of {
            let host = &fenced.host;
            changes.new_operations.push(&fenced.operation);
            changes.proofs.push((host.id, &fenced.won));
            changes.hosts.push(whole(host, Some(at(7))));
            changes.events.extend((1..=3).map(|nth| event(host, nth)));
            changes.audit.extend(["one", "two", "three"].map(line));
            changes.outbox.push(message(1));
        }
        changes
    }
}

async fn numbers(db: &Database) -> Vec<(u64, u64)> {
    let events = events_after(&mut db.reader(), 0, None, 100).await.unwrap();
    let numbers = events
        .iter()
        .map(|row| (row.sequence, row.event.host.as_ref().unwrap().sequence));
    numbers.collect()
}

async fn a_fence_with_its_proof_and_events_is_written_at_once(rig: &Rig) {
    for locking in HOW {
        let rig = rig.fresh_with_schema().await;
        let (_, host) = one_host(&rig.db).await;
        let fenced = Fenced::of(&host);
        let begun = begin(&rig.db, &host, locking).await;
        let ended = begun.transaction.commit(&Fenced::changes([&fenced])).await;
        assert!(COMMITTED(&ended.unwrap()));
        let read = host_row(&mut rig.db.reader(), &host.name).await.unwrap().unwrap();
        assert_eq!(read.host, fenced.host);
        assert_eq!(
            actions(&rig, &AuditFilter::default()).await,
            ["three", "two", "one"]
        );
        number_events(&rig.db).await.unwrap();
        assert_eq!(numbers(&rig.db).await, [(1, 1), (2, 2), (3, 3)]);
        rig.end().await;
    }
}

async fn many_hosts_are_written_in_one_transaction(rig: &Rig) {
    let (segment, _) = one_host(&rig.db).await;
    let names: Vec<_> = (0..30).map(|n| format!("h{n:02}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let hosts = add_hosts(&mut rig.db.reader(), &segment, &names).await;
    let ids: Vec<HostId> = hosts.iter().map(|host| host.id).collect();
    let fenced: Vec<_> = hosts.iter().map(Fenced::of).collect();
    let begun = rig.db.begin_with_hosts(&ids, Locking::Optimistic).await.unwrap();
    assert_eq!(begun.hosts.len(), 30);
    begun.transaction.commit(&Fenced::changes(&fenced)).await.unwrap();
    for fenced in &fenced {
        let read = load_state(&mut rig.db.reader(), &fenced.host.name).await.unwrap();
        assert_eq!(read.unwrap().host, fenced.host);
        let read = operation(&mut rig.db.reader(), fenced.operation.id.0).await;
        assert_eq!(read.unwrap().as_ref(), Some(&fenced.operation));
    }
    number_events(&rig.db).await.unwrap();
    assert_eq!(numbers(&rig.db).await.len(), 90);
}

async fn a_new_operation_replaces_the_superseded_one(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let mut live = fence(&host, 1);
    insert_operation(&rig.db, &live).await.unwrap();
    for (generation, locking) in (2..).zip(HOW) {
        let (over, next) = (done(&live), fence(&host, generation));
        let begun = begin(&rig.db, &host, locking).await;
        let changes = Changes {
            changed_operations: vec![(&over, &live)],
            new_operations: vec![&next],
            hosts: vec![whole(&host, None)],
            ..Changes::default()
        };
        assert!(COMMITTED(&begun.transaction.commit(&changes).await.unwrap()));
        let state = load_state(&mut rig.db.reader(), &host.name).await.unwrap();
        assert_eq!(state.unwrap().operation.as_ref(), Some(&next));
        live = next;
    }
}

async fn the_end_of_an_attempt_ends_its_leases(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let running = fence(&host, 1);
    insert_operation(&rig.db, &running).await.unwrap();
    for (nth, locking) in (1..).zip(HOW) {
        assert!(lease(&rig.db, "bmc-1", attempt(nth), 0, 30).await);
        let ended = done(&running);
        let begun = begin(&rig.db, &host, locking).await;
        let changes = Changes {
            released: vec![attempt(nth)],
            changed_operations: vec![(&ended, &running)],
            hosts: vec![whole(&host, None)],
            ..Changes::default()
        };
        assert!(COMMITTED(&begun.transaction.commit(&changes).await.unwrap()));
        let read = operation(&mut rig.db.reader(), running.id.0).await.unwrap();
        assert_eq!(read, Some(ended));
    }
    assert!(lease(&rig.db, "bmc-1", attempt(9), 1, 30).await);
}

async fn one_refused_change_refuses_all_changes_of_the_transaction(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    for locking in HOW {
        let mut fenced = Fenced::of(&host);
        fenced.won.kind = ProofKind::NetworkFence;
        let begun = begin(&rig.db, &host, locking).await;
        assert_refused(begun.transaction.commit(&Fenced::changes([&fenced])).await);
        let state = load_state(&mut rig.db.reader(), &host.name).await.unwrap();
        let state = state.unwrap();
        assert_eq!(state.operation, None);
        assert_eq!(state.host.fencing_state(), FencingState::Unfenced);
        assert_eq!(actions(rig, &AuditFilter::default()).await, [""; 0]);
    }
}

async fn a_commit_without_its_device_or_key_changes_nothing_and_names_it(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let mut reader = rig.db.reader();
    assert!(lease(&rig.db, "bmc-2", attempt(9), 0, 30).await);
    let name = KeyName {
        caller: "alice",
        key: "7f0c1a52",
    };
    let [holder, other] = [Uuid::from_u128(1), Uuid::from_u128(2)];
    insert_key(&mut reader, name, "digest", holder, at(0), at(60))
        .await
        .unwrap();
    let receipt = |holder| NewReceipt {
        name,
        holder,
        receipt: json!({ "host": 1 }),
    };
    let changes = |device: &str, holder, nth| Changes {
        leases: vec![
            wanted(device, attempt(1), 1, 30),
            wanted("bmc-1", attempt(1), 1, 30),
        ],
        receipts: vec![receipt(holder)],
        hosts: vec![whole(&host, None)],
        events: vec![event(&host, nth)],
        ..Changes::default()
    };
    let is_sqlite = rig.db.is_sqlite();
    for (device, by, devices, holders) in [
        ("bmc-2", holder, vec!["bmc-2".to_owned()], vec![]),
        ("bmc-3", other, vec![], vec![other]),
    ] {
        for locking in HOW {
            let begun = begin(&rig.db, &host, locking).await;
            let ended = begun.transaction.commit(&changes(device, by, 1)).await.unwrap();
            let expected = if locking == Locking::Optimistic && !is_sqlite {
                Ended::HostsChanged
            } else {
                Ended::Refused(NotHad {
                    devices: devices.clone(),
                    holders: holders.clone(),
                    ..NotHad::default()
                })
            };
            assert_eq!(ended, expected);
        }
    }
    number_events(&rig.db).await.unwrap();
    assert_eq!(numbers(&rig.db).await, []);
    assert_eq!(key_row(&mut reader, name).await.unwrap().unwrap().receipt, None);

    for (nth, locking) in (1..).zip(HOW) {
        let begun = begin(&rig.db, &host, locking).await;
        let ended = begun
            .transaction
            .commit(&changes("bmc-3", holder, nth))
            .await
            .unwrap();
        // The second commit finds a receipt.
        assert_eq!(COMMITTED(&ended), locking == Locking::Optimistic);
    }
    assert!(!lease(&rig.db, "bmc-1", attempt(2), 2, 30).await);
    release(&rig.db, &[attempt(1)]).await;
    assert!(lease(&rig.db, "bmc-1", attempt(2), 2, 30).await);
}

async fn an_empty_commit_succeeds(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    for locking in HOW {
        let begun = begin(&rig.db, &host, locking).await;
        let ended = begun.transaction.commit(&Changes::default()).await.unwrap();
        assert!(COMMITTED(&ended));
    }
}

async fn an_unknown_host_is_left_out(rig: &Rig) {
    let (segment, host) = one_host(&rig.db).await;
    let nowhere = crate::site::host("nowhere", &segment).id;
    for locking in HOW {
        let begun = rig.db.begin_with_hosts(&[nowhere], locking).await.unwrap();
        assert!(begun.hosts.is_empty());
    }
    let both = [nowhere, host.id];
    let begun = rig
        .db
        .begin_with_hosts(&both, Locking::Pessimistic)
        .await
        .unwrap();
    assert_eq!(begun.hosts.len(), 1);
    assert_eq!(begun.read_at.is_some(), !rig.db.is_sqlite());
}

/// Changes with the unchanged host, and events about it.
fn telling<'a>(host: &'a Host, events: std::ops::RangeInclusive<u64>) -> Changes<'a> {
    Changes {
        hosts: vec![whole(host, Some(at(7)))],
        events: events.map(|nth| event(host, nth)).collect(),
        ..Changes::default()
    }
}

#[tokio::test]
async fn a_commit_in_one_statement_numbers_and_announces_its_events() {
    let rig = Rig::postgresql().await;
    let (_, host) = one_host(&rig.db).await;
    let mut announcements = rig.another().await.announcements().await.unwrap().unwrap();
    let begun = begin(&rig.db, &host, Locking::Optimistic).await;
    let ended = begun.transaction.commit(&telling(&host, 1..=3)).await.unwrap();
    let announced_ones = Ended::Committed {
        are_events_announced: true,
    };
    assert_eq!(ended, announced_ones);
    assert_eq!(numbers(&rig.db).await, [(1, 1), (2, 2), (3, 3)]);
    announced(&mut announcements).await;
    drop(announcements);
    rig.end().await;
}

#[tokio::test]
async fn a_host_that_has_changed_since_it_was_read_is_not_written() {
    let rig = Rig::postgresql().await;
    let (_, host) = one_host(&rig.db).await;
    let late = begin(&rig.db, &host, Locking::Optimistic).await;
    // An update without a change is also an update.
    update_host(&mut rig.db.reader(), &host, None).await.unwrap();
    let begun = fence(&host, 1);
    let changes = Changes {
        new_operations: vec![&begun],
        ..telling(&host, 1..=1)
    };
    assert_eq!(
        late.transaction.commit(&changes).await.unwrap(),
        Ended::HostsChanged
    );
    assert_eq!(numbers(&rig.db).await, []);
    let state = load_state(&mut rig.db.reader(), &host.name).await.unwrap();
    assert_eq!(state.unwrap().operation, None);

    let upon_nothing = begin(&rig.db, &host, Locking::Optimistic).await;
    ringfence_db::delete_host(&mut rig.db.reader(), host.id)
        .await
        .unwrap();
    let ended = upon_nothing.transaction.commit(&telling(&host, 1..=1)).await;
    assert_eq!(ended.unwrap(), Ended::HostsChanged);
    rig.end().await;
}

#[tokio::test]
async fn no_decision_is_written_after_its_time_limit() {
    let rig = Rig::postgresql().await;
    let (_, host) = one_host(&rig.db).await;
    for (after_s, is_written) in [(-1, false), (60, true)] {
        let begun = begin(&rig.db, &host, Locking::Optimistic).await;
        let read_at = begun.read_at.unwrap();
        let lag = rig.db.now().await.unwrap() - read_at;
        assert!(lag >= chrono::TimeDelta::zero() && lag < chrono::TimeDelta::seconds(60));
        let changes = Changes {
            not_after: Some(read_at + chrono::TimeDelta::seconds(after_s)),
            ..telling(&host, 1..=1)
        };
        let ended = begun.transaction.commit(&changes).await.unwrap();
        assert_eq!(COMMITTED(&ended), is_written, "{after_s}");
    }
    // The refused one may not have let go of the numbers yet when the other was committed.
    number_events(&rig.db).await.unwrap();
    assert_eq!(numbers(&rig.db).await, [(1, 1)]);
    rig.end().await;
}

/// Commits changes of a host that was read without a lock.
async fn commit_upon(db: Database, begun: Begun, host: Host, nth: u64) -> Ended {
    assert!(!db.is_sqlite());
    let changes = telling(&host, nth..=nth);
    begun.transaction.commit(&changes).await.unwrap()
}

#[tokio::test]
async fn a_commit_in_one_statement_waits_for_a_lock_and_detects_a_change_under_it() {
    let rig = Rig::postgresql().await;
    let (_, host) = one_host(&rig.db).await;
    for is_changed in [false, true] {
        let begun = begin(&rig.db, &host, Locking::Optimistic).await;
        let mut tx = rig.db.begin().await.unwrap();
        let locked = lock_host(&mut tx, host.id).await.unwrap().unwrap();
        let nth = locked.host.event_sequence + 1;
        let next = Host {
            event_sequence: nth,
            ..host.clone()
        };
        let waiting = tokio::spawn(commit_upon(rig.db.clone(), begun, next.clone(), nth));
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!waiting.is_finished());
        if is_changed {
            update_host(&mut tx, &next, Some(at(1))).await.unwrap();
        }
        tx.commit().await.unwrap();
        assert_eq!(COMMITTED(&waiting.await.unwrap()), !is_changed);
    }
    assert_eq!(numbers(&rig.db).await, [(1, 1)]);
    rig.end().await;
}

#[tokio::test]
async fn events_wait_for_their_numbers_while_earlier_events_wait_or_are_being_numbered() {
    let rig = Rig::postgresql().await;
    let (_, host) = one_host(&rig.db).await;
    append_events(&mut rig.db.reader(), &[event(&host, 1)])
        .await
        .unwrap();
    let begun = begin(&rig.db, &host, Locking::Optimistic).await;
    let ended = begun.transaction.commit(&telling(&host, 2..=2)).await.unwrap();
    assert_eq!(ended, Ended::NOTHING);
    assert_eq!(numbers(&rig.db).await, []);
    assert_eq!(number_events(&rig.db).await.unwrap(), 2);
    assert_eq!(numbers(&rig.db).await, [(1, 1), (2, 2)]);

    let numbering = rig.hold("SELECT pg_advisory_xact_lock(7411938025476)").await;
    let begun = begin(&rig.db, &host, Locking::Optimistic).await;
    let changes = telling(&host, 3..=3);
    let ended = timeout(Duration::from_secs(20), begun.transaction.commit(&changes)).await;
    assert_eq!(
        ended.expect("the commit waited for the numbering").unwrap(),
        Ended::NOTHING
    );
    drop(numbering);
    assert_eq!(number_events(&rig.db).await.unwrap(), 1);
    assert_eq!(numbers(&rig.db).await, [(1, 1), (2, 2), (3, 3)]);
    rig.end().await;
}

/// Changes a host so many times, with and without a lock.
async fn change_often(db: Database, host: Host, times: u64) {
    for nth in 1..=times {
        let next = Host {
            event_sequence: nth,
            ..host.clone()
        };
        let locking = if nth % 3 > 0 {
            Locking::Optimistic
        } else {
            Locking::Pessimistic
        };
        let begun = begin(&db, &host, locking).await;
        let ended = begun.transaction.commit(&telling(&next, nth..=nth)).await;
        assert!(COMMITTED(&ended.unwrap()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_misses_no_event_of_concurrent_changes() {
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
        changer.await.unwrap();
    }
    stop.store(true, Ordering::SeqCst);
    numberer.await.unwrap();
    let seen = timeout(Duration::from_secs(30), reader).await;
    assert_per_host_order(&seen.expect("the reader missed events").unwrap());
    rig.end().await;
}

#[tokio::test]
async fn sqlite_locks_a_host_that_was_read_before_the_transaction() {
    let rig = Rig::sqlite().await;
    let (_, host) = one_host(&rig.db).await;
    let seen = see_host(&mut rig.db.reader(), &host.name).await.unwrap().unwrap();
    update_host(&mut rig.db.reader(), &host, Some(at(3)))
        .await
        .unwrap();
    let begun = rig.db.begin_upon(seen).await.unwrap();
    let ended = begun.transaction.commit(&telling(&host, 1..=1)).await.unwrap();
    assert!(COMMITTED(&ended));
    assert!(commit(&rig.db, &Changes::default()).await.is_ok());
    rig.end().await;
}
