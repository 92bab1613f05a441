//! Databases that do not answer, or stop answering.

use std::error::Error;
use std::net::TcpListener;
use std::time::Duration;

use ringfence_db::{
    AuditEntry, AuditFilter, Database, DbError, Kept, append_audit, audit_page, insert_segment, lock_host,
    old_rows, remove_rows, segment as read_segment,
};
use serde_json::json;
use tokio::time::timeout;

use crate::rig::Rig;
use crate::site::{at, one_host, segment};

const PASSWORD: &str = "geheim-7%21";

crate::stories!(faults:
    a_database_that_answers_passes_its_ping,
    a_closed_database_gives_a_passing_error,
    a_value_that_cannot_be_read_is_named,
);

/// Everything that a log could show of an error, or of the database itself.
fn all_messages_of(db: Option<&Database>, error: &DbError) -> String {
    let mut text = format!("{db:?} {error} {error:?}");
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(" {cause} {cause:?}"));
        source = cause.source();
    }
    text
}

fn assert_no_secret(text: &str) {
    for part in ["geheim", PASSWORD, "geheim-7!"] {
        assert!(!text.contains(part), "a password was shown: {text}");
    }
}

async fn a_database_that_answers_passes_its_ping(rig: &Rig) {
    rig.db.ping().await.unwrap();
    let one = rig.db.now().await.unwrap();
    let other = rig.db.now().await.unwrap();
    assert!(other >= one);
    assert!(rig.url.ends_with(rig.db.address().rsplit('/').next().unwrap()));
}

async fn a_closed_database_gives_a_passing_error(rig: &Rig) {
    let db = rig.another().await;
    db.close().await;
    for error in [db.ping().await.unwrap_err(), db.begin().await.err().unwrap()] {
        assert!(matches!(error, DbError::Unavailable { .. }), "{error:?}");
        assert!(error.is_passing());
    }
}

async fn a_value_that_cannot_be_read_is_named(rig: &Rig) {
    let (segment, _) = one_host(&rig.db).await;
    rig.past("UPDATE segments SET policy = '7'").await.unwrap();
    let error = read_segment(&mut rig.db.reader(), &segment.name)
        .await
        .unwrap_err();
    assert!(
        matches!(error, DbError::Unreadable { column: "policy", .. }),
        "{error:?}"
    );
    assert!(!error.is_passing());
}

#[tokio::test]
async fn an_unreachable_server_is_named_without_its_password() {
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let url = format!("postgres://anna:{PASSWORD}@127.0.0.1:{port}/ringfence?application_name=x");
    let db = Database::open(&url, 2).await.unwrap();
    let address = format!("postgres://127.0.0.1:{port}/ringfence");
    assert_eq!(db.address(), address);
    for error in [
        db.ping().await.unwrap_err(),
        db.begin().await.err().unwrap(),
        db.now().await.unwrap_err(),
    ] {
        assert!(error.is_passing());
        assert!(error.to_string().contains(&address), "{error}");
        assert_no_secret(&all_messages_of(Some(&db), &error));
    }
}

/// A database with two connections and a time limit of 300 ms.
async fn impatient(rig: &Rig) -> Database {
    Database::open_within(&rig.url, 2, Duration::from_millis(300))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_wait_for_a_locked_row_ends_with_a_passing_error() {
    let rig = Rig::empty_postgresql().await;
    ringfence_db::migrate(&rig.db).await.unwrap();
    let (_, host) = one_host(&rig.db).await;
    let mut holding = rig.db.begin().await.unwrap();
    lock_host(&mut holding, host.id).await.unwrap();
    let db = impatient(&rig).await;
    let mut waiting = db.begin().await.unwrap();
    let error = lock_host(&mut waiting, host.id).await.unwrap_err();
    assert!(matches!(error, DbError::Unavailable { .. }), "{error:?}");
    assert!(error.is_passing(), "{error:?}");
    drop(waiting);
    drop(holding);
    let mut again = db.begin().await.unwrap();
    assert!(lock_host(&mut again, host.id).await.unwrap().is_some());
    again.commit().await.unwrap();
    rig.end().await;
}

#[tokio::test]
async fn a_forgotten_transaction_releases_its_rows() {
    let rig = Rig::empty_postgresql().await;
    ringfence_db::migrate(&rig.db).await.unwrap();
    let (_, host) = one_host(&rig.db).await;
    let db = impatient(&rig).await;
    let mut forgotten = db.begin().await.unwrap();
    lock_host(&mut forgotten, host.id).await.unwrap();
    let mut next = rig.db.begin().await.unwrap();
    assert!(lock_host(&mut next, host.id).await.unwrap().is_some());
    let error = lock_host(&mut forgotten, host.id).await.unwrap_err();
    assert!(error.is_passing(), "{error:?}");
    next.commit().await.unwrap();
    rig.end().await;
}

async fn read_trail(db: &Database) -> Result<usize, DbError> {
    let page = audit_page(&mut db.reader(), &AuditFilter::default(), None, 10).await;
    page.map(|page| page.len())
}

#[tokio::test]
async fn the_removal_of_old_rows_may_exceed_the_time_limit_of_reads() {
    let rig = Rig::empty_postgresql().await;
    ringfence_db::migrate(&rig.db).await.unwrap();
    let line = AuditEntry {
        at: at(1),
        actor: "anna".to_owned(),
        origin: None,
        request_id: None,
        action: "test".to_owned(),
        target: None,
        host_id: None,
        detail: json!({}),
    };
    append_audit(&mut rig.db.reader(), &line).await.unwrap();
    let db = impatient(&rig).await;
    let hold = "BEGIN; LOCK TABLE audit IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(2); COMMIT";
    let patient = async {
        while read_trail(&db).await.is_ok() {}
        let old = old_rows(&db, Kept::Audit, at(50), 10).await.unwrap();
        assert_eq!(old.len(), 1);
        old
    };
    let (held, old) = tokio::join!(rig.past(hold), patient);
    held.unwrap();
    let patient = async {
        while read_trail(&db).await.is_ok() {}
        remove_rows(&db, Kept::Audit, at(50), &old).await.unwrap()
    };
    let (held, removed) = tokio::join!(rig.past(hold), patient);
    held.unwrap();
    assert_eq!(removed, 1);
    rig.end().await;
}

#[tokio::test]
async fn a_wrong_password_is_neither_shown_nor_tried_again() {
    let rig = Rig::empty_postgresql().await;
    rig.past(&format!("DROP ROLE IF EXISTS nobody_{0}", std::process::id()))
        .await
        .unwrap();
    let (_, server) = rig.url.rsplit_once('@').unwrap();
    let url = format!("postgres://nobody_{}:{PASSWORD}@{server}", std::process::id());
    let db = Database::open(&url, 2).await.unwrap();
    let error = db.ping().await.unwrap_err();
    assert!(!error.is_passing(), "{error:?}");
    assert!(error.to_string().contains(db.address()), "{error}");
    assert_no_secret(&all_messages_of(Some(&db), &error));
    rig.end().await;
}

#[tokio::test]
async fn a_database_that_the_server_does_not_have_is_named() {
    let rig = Rig::empty_postgresql().await;
    let db = Database::open(&format!("{}_not", rig.url), 2).await.unwrap();
    let error = db.ping().await.unwrap_err();
    assert!(!error.is_passing(), "{error:?}");
    assert!(
        error.to_string().contains(db.address()) && error.to_string().contains("does not exist"),
        "{error}"
    );
    rig.end().await;
}

#[tokio::test]
async fn an_address_that_cannot_be_used_is_refused_without_its_password() {
    for (url, shown) in [
        (
            format!("mysql://anna:{PASSWORD}@db/ringfence"),
            Some("mysql://db/ringfence"),
        ),
        (
            format!("postgres://anna:{PASSWORD}@db:port/ringfence"),
            Some("postgres://db:port/ringfence"),
        ),
        (format!("anna:{PASSWORD}@db"), None),
        // The password has characters that had to be escaped, so that its rest reads as another part of the address.
        (format!("postgres://anna:{PASSWORD}?x@db/ringfence"), None),
        (format!("postgres://anna:{PASSWORD}/x@db:port/ringfence"), None),
        (format!("postgres://anna:{PASSWORD}#x@db:port/ringfence"), None),
        (
            format!("postgres://db:port/ringfence?password={PASSWORD}@x"),
            None,
        ),
    ] {
        let error = Database::open(&url, 2).await.unwrap_err();
        assert!(matches!(error, DbError::Address { .. }), "{error:?}");
        assert!(!error.is_passing());
        assert_no_secret(&all_messages_of(None, &error));
        if let Some(shown) = shown {
            assert!(error.to_string().contains(shown), "{error}");
        }
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing/ringfence.db");
    let error = Database::open(&format!("sqlite://{}", path.display()), 1)
        .await
        .unwrap_err();
    let text = all_messages_of(None, &error);
    assert!(text.contains("missing/ringfence.db"), "{text}");
}

const CUT_ALL: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                       WHERE datname = current_database() AND pid <> pg_backend_pid()";

/// Tries again after a passing error, as the engine does.
async fn begin_again(db: &Database) -> ringfence_db::Tx {
    for _ in 0..20 {
        match db.begin().await {
            Ok(tx) => return tx,
            Err(error) => assert!(error.is_passing(), "{error:?}"),
        }
    }
    panic!("the database did not come back")
}

#[tokio::test]
async fn a_connection_that_is_cut_in_a_transaction_is_a_passing_error_and_changes_nothing() {
    let rig = Rig::postgresql().await;
    let (_, host) = one_host(&rig.db).await;
    let mut tx = rig.db.begin().await.unwrap();
    lock_host(&mut tx, host.id).await.unwrap();
    let half = segment("half");
    insert_segment(&mut tx, &half).await.unwrap();
    rig.past(CUT_ALL).await.unwrap();
    let error = insert_segment(&mut tx, &segment("rest")).await.unwrap_err();
    assert!(error.is_passing(), "{error:?}");
    let error = tx.commit().await.unwrap_err();
    assert!(error.is_passing(), "{error:?}");

    let mut tx = begin_again(&rig.db).await;
    lock_host(&mut tx, host.id).await.unwrap();
    assert!(read_segment(&mut tx, &half.name).await.unwrap().is_none());
    drop(tx);
    rig.end().await;
}

#[tokio::test]
async fn a_commit_that_is_cut_is_a_passing_error() {
    let rig = Rig::postgresql().await;
    let mut tx = rig.db.begin().await.unwrap();
    insert_segment(&mut tx, &segment("half")).await.unwrap();
    rig.past(CUT_ALL).await.unwrap();
    assert!(tx.commit().await.unwrap_err().is_passing());
    rig.end().await;
}

/// As after a restart of the database: every connection of the pool is dead, and the pool does not know it.
#[tokio::test]
async fn dead_connections_are_replaced_before_they_are_used() {
    let rig = Rig::postgresql().await;
    let mut open = Vec::new();
    for _ in 0..8 {
        open.push(rig.db.begin().await.unwrap());
    }
    drop(open);
    rig.db.ping().await.unwrap();
    tokio::time::sleep(Duration::from_millis(1200)).await;
    rig.past(CUT_ALL).await.unwrap();
    for _ in 0..8 {
        rig.db.ping().await.unwrap();
        rig.db.begin().await.unwrap();
    }
    rig.end().await;
}

/// Two transactions that wait for each other: PostgreSQL ends one, which should be tried again.
#[tokio::test]
async fn a_deadlock_is_a_passing_error() {
    let rig = Rig::postgresql().await;
    let (rack, one) = one_host(&rig.db).await;
    let other = crate::site::host("node-2", &rack);
    ringfence_db::insert_host(&mut rig.db.reader(), &other)
        .await
        .unwrap();
    let (mut a, mut b) = (rig.db.begin().await.unwrap(), rig.db.begin().await.unwrap());
    lock_host(&mut a, one.id).await.unwrap();
    lock_host(&mut b, other.id).await.unwrap();
    let a = tokio::spawn(async move { lock_host(&mut a, other.id).await.map(|_| ()) });
    let b = tokio::spawn(async move { lock_host(&mut b, one.id).await.map(|_| ()) });
    let (a, b) = (a.await.unwrap(), b.await.unwrap());
    let errors: Vec<_> = [a, b].into_iter().filter_map(Result::err).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].is_passing(), "{errors:?}");
    rig.end().await;
}

/// Another process holds standalone's file for longer than the time limit.
#[tokio::test]
async fn a_file_that_another_process_holds_is_a_passing_error() {
    let rig = Rig::sqlite().await;
    let other = rig.another().await;
    let held = other.begin().await.unwrap();
    let error = insert_segment(&mut rig.db.reader(), &segment("waits"))
        .await
        .unwrap_err();
    assert!(error.is_passing(), "{error:?}");
    drop(held);
    insert_segment(&mut rig.db.reader(), &segment("waits"))
        .await
        .unwrap();
}

/// A statement whose caller has gone occupies its connection until the server is done with it. Callers use the other connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_stuck_delays_no_other_connection() {
    let rig = Rig::postgresql().await;
    let (_, host) = one_host(&rig.db).await;
    // Two connections for reads, and one that listens.
    let few = Database::open(&rig.url, 4).await.unwrap();
    let announcements = few.announcements().await.unwrap().unwrap();
    let lock = rig.hold("SELECT 1 FROM hosts FOR UPDATE").await;
    let mut reader = few.reader();
    let stuck = crate::site::update_host(&mut reader, &host, None);
    timeout(Duration::from_millis(300), stuck)
        .await
        .expect_err("the statement waits for the lock");
    let ping = || {
        let few = few.clone();
        tokio::spawn(async move {
            for _ in 0..100 {
                few.ping().await.unwrap();
            }
        })
    };
    for pinging in [ping(), ping(), ping(), ping()] {
        pinging.await.unwrap();
    }
    drop((lock, announcements));
    few.close().await;
    rig.end().await;
}
