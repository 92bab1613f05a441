//! Events that are written concurrently, and read in one order without a gap.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringfence_core::{Host, HostId};
use ringfence_db::{
    Announcements, Database, EventRow, append_events, events_after, insert_host, insert_segment,
    last_sequence, number_events,
};
use sqlx::{Connection, PgConnection};
use tokio::time::{Instant, timeout};

use crate::rig::Rig;
use crate::site::{event, host, one_host, segment};

crate::stories!(events:
    a_reader_misses_no_event_that_is_written_concurrently,
    two_concurrent_numberers_give_every_number_once,
    an_event_can_be_read_only_after_its_commit,
    events_can_be_read_by_host_and_in_pages,
    an_event_outlives_its_segment,
);

/// Writers begin in one order and commit in another; each writes to hosts of its own.
async fn write_concurrently(db: Database, hosts: Vec<Host>, rounds: u64) {
    for round in 0..rounds {
        let mut open = Vec::new();
        for (i, host) in hosts.iter().enumerate() {
            if db.is_sqlite() && !open.is_empty() {
                break;
            }
            let mut tx = db.begin().await.unwrap();
            let new = [event(host, 2 * round + 1), event(host, 2 * round + 2)];
            append_events(&mut tx, &new).await.unwrap();
            open.push((i, tx));
        }
        // The transaction that began last commits first.
        for (i, tx) in open.into_iter().rev() {
            tx.commit().await.unwrap();
            if i % 2 == 0 {
                tokio::task::yield_now().await;
            }
        }
    }
}

pub async fn number_until(db: Database, stop: Arc<AtomicBool>) {
    loop {
        let last_time = stop.load(Ordering::SeqCst);
        let numbered = number_events(&db).await.unwrap();
        if last_time && numbered == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

pub async fn read_until(db: Database, expected: usize) -> Vec<EventRow> {
    let mut seen = Vec::new();
    let mut after = 0;
    while seen.len() < expected {
        let rows = events_after(&mut db.reader(), after, None, 7).await.unwrap();
        if rows.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for row in rows {
            assert!(row.sequence > after, "{} came after {after}", row.sequence);
            after = row.sequence;
            seen.push(row);
        }
    }
    seen
}

pub fn assert_per_host_order(seen: &[EventRow]) {
    let mut last: HashMap<HostId, u64> = HashMap::new();
    for row in seen {
        let host = row.event.host.as_ref().unwrap();
        let before = last.insert(host.id, host.sequence).unwrap_or(0);
        assert_eq!(host.sequence, before + 1, "of host {}", host.name);
    }
}

async fn a_reader_misses_no_event_that_is_written_concurrently(rig: &Rig) {
    const WRITERS: usize = 4;
    let rounds = 15;
    let rack = segment("rack-1");
    insert_segment(&mut rig.db.reader(), &rack).await.unwrap();
    let per_writer = if rig.db.is_sqlite() { 1 } else { 3 };
    let expected = WRITERS * per_writer * usize::try_from(rounds).unwrap() * 2;

    let writers: Vec<_> = (0..WRITERS)
        .map(|w| {
            let hosts = (0..per_writer)
                .map(|h| host(&format!("node-{w}-{h}"), &rack))
                .collect();
            tokio::spawn(write_concurrently(rig.db.clone(), hosts, rounds))
        })
        .collect();
    let stop = Arc::new(AtomicBool::new(false));
    let numberers: Vec<_> = (0..2)
        .map(|_| tokio::spawn(number_until(rig.db.clone(), Arc::clone(&stop))))
        .collect();
    let reader = tokio::spawn(read_until(rig.db.clone(), expected));

    for writer in writers {
        writer.await.unwrap();
    }
    stop.store(true, Ordering::SeqCst);
    for numberer in numberers {
        numberer.await.unwrap();
    }
    let seen = timeout(Duration::from_secs(30), reader)
        .await
        .expect("the reader missed events")
        .unwrap();
    assert_per_host_order(&seen);
    assert_eq!(
        last_sequence(&mut rig.db.reader()).await.unwrap(),
        seen.last().unwrap().sequence
    );
    let table = events_after(&mut rig.db.reader(), 0, None, 10_000).await.unwrap();
    assert_eq!(
        table, seen,
        "the events of a later read differ from those of the live reader"
    );
}

async fn two_concurrent_numberers_give_every_number_once(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let many: Vec<_> = (1..=1200).map(|n| event(&host, n)).collect();
    let mut tx = rig.db.begin().await.unwrap();
    append_events(&mut tx, &many).await.unwrap();
    tx.commit().await.unwrap();
    let numberers: Vec<_> = (0..4)
        .map(|_| {
            let db = rig.db.clone();
            tokio::spawn(async move { number_events(&db).await.unwrap() })
        })
        .collect();
    let mut numbered = 0;
    for numberer in numberers {
        numbered += numberer.await.unwrap();
    }
    assert_eq!(numbered, if rig.db.is_sqlite() { 0 } else { 1200 });
    let rows = events_after(&mut rig.db.reader(), 0, None, 2000).await.unwrap();
    let numbers: Vec<_> = rows.iter().map(|row| row.sequence).collect();
    assert_eq!(numbers, (1..=1200).collect::<Vec<_>>());
    assert_per_host_order(&rows);
}

async fn an_event_can_be_read_only_after_its_commit(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let mut tx = rig.db.begin().await.unwrap();
    append_events(&mut tx, &[event(&host, 1)]).await.unwrap();
    if !rig.db.is_sqlite() {
        assert_eq!(number_events(&rig.db).await.unwrap(), 0);
    }
    assert_eq!(last_sequence(&mut rig.db.reader()).await.unwrap(), 0);
    tx.commit().await.unwrap();
    number_events(&rig.db).await.unwrap();
    assert_eq!(last_sequence(&mut rig.db.reader()).await.unwrap(), 1);
}

async fn events_can_be_read_by_host_and_in_pages(rig: &Rig) {
    let (segment, one) = one_host(&rig.db).await;
    let other = host("node-2", &segment);
    insert_host(&mut rig.db.reader(), &other).await.unwrap();
    for n in 1..=3 {
        append_events(&mut rig.db.reader(), &[event(&one, n), event(&other, n)])
            .await
            .unwrap();
    }
    number_events(&rig.db).await.unwrap();
    let mut reader = rig.db.reader();
    let of_one = events_after(&mut reader, 0, Some(one.id), 2).await.unwrap();
    assert_eq!(
        of_one
            .iter()
            .map(|row| row.event.host.as_ref().unwrap().sequence)
            .collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(of_one[0].segment.as_deref(), Some("rack-1"));
    let rest = events_after(&mut reader, of_one[1].sequence, Some(one.id), 2)
        .await
        .unwrap();
    assert_eq!(
        rest.iter()
            .map(|row| row.event.host.as_ref().unwrap().sequence)
            .collect::<Vec<_>>(),
        [3]
    );
    assert!(
        events_after(&mut reader, u64::MAX, None, 2)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(events_after(&mut reader, 2, None, 100).await.unwrap().len(), 4);
}

async fn an_event_outlives_its_segment(rig: &Rig) {
    let gone = segment("gone");
    let host = host("node-1", &gone);
    append_events(&mut rig.db.reader(), &[event(&host, 1)])
        .await
        .unwrap();
    number_events(&rig.db).await.unwrap();
    let rows = events_after(&mut rig.db.reader(), 0, None, 10).await.unwrap();
    assert_eq!(rows[0].segment, None);
    assert_eq!(rows[0].event.host.as_ref().unwrap().segment_id, gone.id);
}

pub async fn announced(announcements: &mut Announcements) {
    timeout(Duration::from_secs(20), announcements.next())
        .await
        .expect("an announcement")
        .unwrap();
}

#[tokio::test]
async fn numbering_is_announced_where_there_are_several_processes() {
    let rig = Rig::postgresql().await;
    let (_, host) = one_host(&rig.db).await;
    let mut announcements = rig.another().await.announcements().await.unwrap().unwrap();
    append_events(&mut rig.db.reader(), &[event(&host, 1)])
        .await
        .unwrap();
    number_events(&rig.db).await.unwrap();
    announced(&mut announcements).await;
    drop(announcements);
    rig.end().await;

    let standalone = Rig::sqlite().await;
    assert!(standalone.db.announcements().await.unwrap().is_none());
}

/// Numbers of events that the server has read by a scan and by an index.
async fn rows_read(rig: &Rig) -> (i64, i64) {
    let mut connection = PgConnection::connect(&rig.url).await.unwrap();
    let sql = "SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'events'";
    sqlx::query_as(sql).fetch_one(&mut connection).await.unwrap()
}

#[tokio::test]
async fn events_are_read_by_index_even_if_the_plan_is_from_a_small_table() {
    let rig = Rig::postgresql().await;
    let (_, host) = one_host(&rig.db).await;
    append_events(&mut rig.db.reader(), &[event(&host, 1)])
        .await
        .unwrap();
    number_events(&rig.db).await.unwrap();
    rig.past("VACUUM ANALYZE events").await.unwrap();
    // One connection of each kind: a plan that was made once is kept there.
    let db = Database::open(&rig.url, 2).await.unwrap();
    let read = async |after| {
        for _ in 0..10 {
            for mut reader in [db.reader_by_keys(), db.reader_of_what_grows()] {
                let rows = events_after(&mut reader, after, None, 10).await.unwrap();
                assert_eq!(rows.len(), 1);
            }
        }
    };
    read(0).await;
    let more: Vec<_> = (2..=5000).map(|n| event(&host, n)).collect();
    for more in more.chunks(500) {
        let mut tx = rig.db.begin().await.unwrap();
        append_events(&mut tx, more).await.unwrap();
        tx.commit().await.unwrap();
        number_events(&rig.db).await.unwrap();
    }
    read(4999).await;
    // The server counts a connection's reads at its end, at the latest.
    db.close().await;
    rig.db.close().await;
    let deadline = Instant::now() + Duration::from_secs(20);
    let in_turn = loop {
        let (in_turn, by_index) = rows_read(&rig).await;
        // Each insert looks for the event before its own.
        if by_index >= 4999 + 20 {
            break in_turn;
        }
        assert!(
            Instant::now() < deadline,
            "{by_index} events read by index, {in_turn} by scan"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(in_turn < 5000, "{in_turn} events were read by a scan");
    rig.end().await;
}
