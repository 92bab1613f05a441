//! PostgreSQL answers frequent queries by an index, with as many hosts as a large site has.
//!
//! The plans are those of the crate's own statements: the server sends each as a notice (`auto_explain`), which the client logs.

use std::fmt::{self, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use ringfence_core::Host;
use ringfence_db::{
    AuditEntry, AuditFilter, Database, Filters, Order, Page, SortKey, Test, append_audit, append_events,
    audit_page, due_hosts, events_after, host_row, hosts_ahead, hosts_page, insert_host, insert_segment,
    load_state, lock_host, newest_operations, newest_operations_of_host, number_events, operations_page,
    removed_host,
};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use uuid::Uuid;

use crate::rig::Rig;
use crate::site::{
    at, done, event, fence, host, hosts_by, insert_operations, operations_by, segment, update_host,
};

const HOSTS: u32 = 2_000;

/// The notices that the client has logged.
#[derive(Clone, Default)]
struct Notices(Arc<Mutex<String>>);

impl Notices {
    fn take(&self) -> String {
        std::mem::take(&mut self.0.lock())
    }
}

impl<S: tracing::Subscriber> Layer<S> for Notices {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        struct Text<'a>(&'a mut String);
        impl tracing::field::Visit for Text<'_> {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
                if field.name() == "message" {
                    let _ = writeln!(self.0, "{value:?}");
                }
            }
        }
        if event.metadata().target().starts_with("sqlx::postgres::notice") {
            event.record(&mut Text(&mut self.0.lock()));
        }
    }
}

/// A site of 2,000 hosts, each with past operations and events; one host in fifty is being fenced.
async fn large_site(db: &Database) -> Vec<Host> {
    let mut tx = db.begin().await.unwrap();
    let racks: Vec<_> = (0..20).map(|n| segment(&format!("rack-{n:02}"))).collect();
    for rack in &racks {
        insert_segment(&mut tx, rack).await.unwrap();
    }
    let (mut hosts, mut operations) = (Vec::new(), Vec::new());
    for n in 0..HOSTS {
        // Two hosts at a time, so that there are ties.
        let host = Host {
            created_at: at(i64::from(n / 2)),
            ..host(&format!("node-{n:04}"), &racks[n as usize % racks.len()])
        };
        insert_host(&mut tx, &host).await.unwrap();
        append_events(&mut tx, &[event(&host, 1), event(&host, 2)])
            .await
            .unwrap();
        operations.extend((1..=2).map(|generation| done(&fence(&host, generation))));
        append_audit(&mut tx, &line(&host, n)).await.unwrap();
        if n % 50 == 0 {
            operations.push(fence(&host, 3));
            update_host(&mut tx, &host, Some(at(i64::from(n)))).await.unwrap();
        }
        hosts.push(host);
    }
    tx.commit().await.unwrap();
    insert_operations(db, &operations).await.unwrap();
    while number_events(db).await.unwrap() > 0 {}
    hosts
}

/// An audit line about a host; some of the hosts were removed.
fn line(host: &Host, n: u32) -> AuditEntry {
    let action = if n.is_multiple_of(500) {
        "host.deleted"
    } else {
        "operation.started"
    };
    AuditEntry {
        at: at(i64::from(n)),
        actor: format!("person-{}", n % 1_000),
        origin: None,
        request_id: Some(format!("req-{n}")),
        action: action.to_owned(),
        target: Some(host.name.clone()),
        host_id: Some(host.id),
        detail: serde_json::Value::Null,
    }
}

async fn explain_from_now_on(rig: &Rig, plan_cache_mode: &str) -> Database {
    let settings = [
        ("session_preload_libraries", "auto_explain"),
        ("auto_explain.log_min_duration", "0"),
        ("auto_explain.log_level", "notice"),
        ("client_min_messages", "notice"),
        ("plan_cache_mode", plan_cache_mode),
    ];
    for (name, value) in settings {
        let sql = format!(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET {name} = ''{value}''', current_database()); END $$"
        );
        rig.past(&sql).await.unwrap();
    }
    rig.another().await
}

fn assert_uses(plans: &str, index: &str) {
    assert!(plans.contains(index), "{index} is not used:\n{plans}");
}

fn assert_no_scan_of(plans: &str, table: &str) {
    assert!(
        !plans.contains(&format!("Seq Scan on {table}")),
        "the whole table {table} is read:\n{plans}"
    );
}

#[tokio::test]
async fn a_large_site_is_read_by_indexes() {
    let rig = Rig::postgresql().await;
    let hosts = large_site(&rig.db).await;
    rig.past("ANALYZE").await.unwrap();
    let notices = Notices::default();
    let subscriber = tracing_subscriber::registry().with(notices.clone());
    let _guard = tracing::subscriber::set_default(subscriber);

    // The plan for the present arguments, and the plan for any arguments, which a long-lived connection may use.
    for mode in ["force_custom_plan", "force_generic_plan"] {
        let db = explain_from_now_on(&rig, mode).await;
        db.ping().await.unwrap();
        notices.take();
        let mut reader = db.reader();

        assert_eq!(due_hosts(&mut reader, at(100), 100).await.unwrap().len(), 3);
        let plans = notices.take();
        assert_uses(&plans, "hosts_by_wake_at");
        assert_no_scan_of(&plans, "hosts");
        assert_eq!(hosts_ahead(&mut reader, at(0), 100).await.unwrap(), []);
        let plans = notices.take();
        assert_uses(&plans, "hosts_by_updated_at");
        assert_no_scan_of(&plans, "hosts");

        let mut tx = db.begin().await.unwrap();
        assert!(
            lock_host(&mut tx, hosts[50].id)
                .await
                .unwrap()
                .unwrap()
                .operation
                .is_some()
        );
        let plans = notices.take();
        assert_uses(&plans, "hosts_pkey");
        assert_uses(&plans, "operations_one_live_per_host");
        assert_no_scan_of(&plans, "hosts");
        assert_no_scan_of(&plans, "operations");
        drop(tx);

        for id_or_name in [hosts[50].id.to_string(), hosts[50].name.clone()] {
            load_state(&mut reader, &id_or_name).await.unwrap().unwrap();
            host_row(&mut reader, &id_or_name).await.unwrap().unwrap();
            let plans = notices.take();
            assert_uses(&plans, "operations_one_live_per_host");
            assert_no_scan_of(&plans, "hosts");
            assert_no_scan_of(&plans, "operations");
        }

        assert_eq!(
            events_after(&mut reader, 3_900, None, 50).await.unwrap().len(),
            50
        );
        let plans = notices.take();
        assert_uses(&plans, "events_sequence_key");
        assert_no_scan_of(&plans, "events");

        for (sort, index) in [
            (SortKey::Name, "hosts_name_key"),
            (SortKey::CreatedAt, "hosts_by_created_at"),
            (SortKey::UpdatedAt, "hosts_by_updated_at"),
        ] {
            for marker in [None, Some(hosts[1000].id.0)] {
                let page = Page {
                    limit: 50,
                    marker,
                    sort: vec![Order {
                        key: sort,
                        descending: marker.is_some(),
                    }],
                };
                let rows = hosts_page(&mut reader, &Filters::default(), &page).await.unwrap();
                assert!(!rows.is_empty());
                let plans = notices.take();
                if mode == "force_custom_plan" {
                    assert_uses(&plans, index);
                    assert_no_scan_of(&plans, "hosts");
                }
                assert_no_scan_of(&plans, "operations");
            }
        }

        lists_in_many_orders_are_read_by_indexes(&db, &notices, &hosts).await;
        if mode == "force_custom_plan" {
            filters_that_no_host_passes_read_no_host(&db, &notices).await;
        }
        operations_are_listed_by_indexes(&db, &notices).await;
        past_operations_are_found_by_indexes(&db, &notices, &hosts[50]).await;
        the_audit_trail_is_read_by_indexes(&db, &notices, &hosts).await;
        assert!(
            removed_host(&mut reader, &hosts[500].name)
                .await
                .unwrap()
                .is_some()
        );
        let plans = notices.take();
        if mode == "force_custom_plan" {
            assert_uses(&plans, "audit_by_action");
        }
        db.close().await;
    }
    rig.end().await;
}

/// The statistics are from a time without live operations, as is nearly always the case. Then many hosts are fenced.
#[tokio::test]
async fn queries_about_one_host_read_no_other_live_operations_in_a_storm() {
    let rig = Rig::postgresql().await;
    let mut tx = rig.db.begin().await.unwrap();
    let rack = segment("rack");
    insert_segment(&mut tx, &rack).await.unwrap();
    let hosts: Vec<Host> = (0..HOSTS).map(|n| host(&format!("node-{n:04}"), &rack)).collect();
    for host in &hosts {
        insert_host(&mut tx, host).await.unwrap();
    }
    tx.commit().await.unwrap();
    let over: Vec<_> = hosts.iter().map(|host| done(&fence(host, 1))).collect();
    insert_operations(&rig.db, &over).await.unwrap();
    rig.past("ANALYZE").await.unwrap();
    let live: Vec<_> = hosts.iter().map(|host| fence(host, 2)).collect();
    insert_operations(&rig.db, &live).await.unwrap();
    let notices = Notices::default();
    let subscriber = tracing_subscriber::registry().with(notices.clone());
    let _guard = tracing::subscriber::set_default(subscriber);
    for mode in ["force_custom_plan", "force_generic_plan"] {
        let db = explain_from_now_on(&rig, mode).await;
        db.ping().await.unwrap();
        notices.take();
        let mut reader = db.reader();
        for id_or_name in [hosts[50].id.to_string(), hosts[50].name.clone()] {
            assert!(
                load_state(&mut reader, &id_or_name)
                    .await
                    .unwrap()
                    .unwrap()
                    .operation
                    .is_some()
            );
            assert_finds_live_by_host(&notices.take());
            host_row(&mut reader, &id_or_name).await.unwrap().unwrap();
            assert_finds_live_by_host(&notices.take());
        }
        let mut tx = db.begin().await.unwrap();
        lock_host(&mut tx, hosts[50].id).await.unwrap().unwrap();
        assert_finds_live_by_host(&notices.take());
        drop(tx);
        db.close().await;
    }
    rig.end().await;
}

/// Asserts that the plan uses the index with one host's id, instead of reading the whole index.
fn assert_finds_live_by_host(plans: &str) {
    assert_uses(plans, "operations_one_live_per_host");
    assert_uses(plans, "Index Cond: (host_id = hosts.id)");
    assert_no_scan_of(plans, "operations");
}

/// The last page costs as much as the first: both begin by the index.
async fn lists_in_many_orders_are_read_by_indexes(db: &Database, notices: &Notices, hosts: &[Host]) {
    let by_name = [SortKey::Name.ascending(), SortKey::CreatedAt.descending()];
    let mixed = [
        SortKey::CreatedAt.ascending(),
        SortKey::UpdatedAt.descending(),
        SortKey::Name.ascending(),
    ];
    let mut reader = db.reader();
    for (sort, index) in [
        (by_name.as_slice(), "hosts_name_key"),
        (mixed.as_slice(), "hosts_by_created_at"),
    ] {
        for marker in [None, Some(&hosts[10]), Some(&hosts[1_980])] {
            let page = Page {
                limit: 10,
                marker: marker.map(|host| host.id.0),
                sort: sort.to_vec(),
            };
            let rows = hosts_page(&mut reader, &Filters::default(), &page).await.unwrap();
            assert_eq!(rows.len(), 10);
            let plans = notices.take();
            assert_uses(&plans, index);
            assert_no_scan_of(&plans, "hosts");
        }
    }
    let fenced = hosts_by("fencing_state", Test::is("FENCED".into()));
    let page = Page {
        limit: 10,
        marker: None,
        sort: vec![SortKey::Name.ascending()],
    };
    hosts_page(&mut reader, &fenced, &page).await.unwrap();
    assert_uses(&notices.take(), "hosts_fenced_by_name");
}

/// Every filter of hosts, with a value that no host has.
async fn filters_that_no_host_passes_read_no_host(db: &Database, notices: &Notices) {
    let is = |name: &str, value: &str| hosts_by(name, Test::is(value.into()));
    let mut reader = db.reader_of_what_grows();
    let filters = [
        (is("name", "x"), "hosts_name_key"),
        (is("zone", "x"), "hosts_by_zone"),
        (
            hosts_by("zone", Test::OneOf(vec!["x".into(), "y".into()])),
            "hosts_by_zone",
        ),
        (is("type", "x"), "hosts_by_host_type"),
        (is("segment", &Uuid::nil().to_string()), "hosts_by_segment"),
        (is("backend", "kubernetes"), "hosts_by_backend"),
        (hosts_by("generation", Test::is(9.into())), "hosts_by_generation"),
        (
            hosts_by("generation", Test::Above(9.into())),
            "hosts_by_generation",
        ),
        (is("failure_state", "UNREACHABLE"), "hosts_unreachable_by_name"),
        (
            hosts_by("fenced_at", Test::Above(at(0).into())),
            "hosts_fenced_by_name",
        ),
    ];
    for (filter, index) in filters {
        let page = Page {
            limit: 50,
            marker: None,
            sort: vec![SortKey::Name.ascending()],
        };
        assert_eq!(hosts_page(&mut reader, &filter, &page).await.unwrap(), []);
        let plans = notices.take();
        assert_uses(&plans, index);
        assert_no_scan_of(&plans, "hosts");
    }
    // No segment has the name, so that no host is read.
    let nowhere = is("segment", "nowhere");
    let page = Page {
        limit: 50,
        marker: None,
        sort: vec![SortKey::Name.ascending()],
    };
    assert_eq!(hosts_page(&mut reader, &nowhere, &page).await.unwrap(), []);
    assert!(!notices.take().contains("hosts_name_key"));
}

async fn operations_are_listed_by_indexes(db: &Database, notices: &Notices) {
    let waiting = operations_by("status", Test::is("needs_operator".into()));
    let mut reader = db.reader();
    for (filter, sort, index) in [
        (Filters::default(), SortKey::CreatedAt, "operations_by_created_at"),
        (Filters::default(), SortKey::UpdatedAt, "operations_by_updated_at"),
        (waiting, SortKey::CreatedAt, "operations_live_by_created_at"),
    ] {
        let page = Page {
            limit: 50,
            marker: None,
            sort: vec![sort.descending()],
        };
        operations_page(&mut reader, &filter, &page).await.unwrap();
        assert_uses(&notices.take(), index);
    }
}

async fn past_operations_are_found_by_indexes(db: &Database, notices: &Notices, host: &Host) {
    let mut reader = db.reader();
    let own = newest_operations_of_host(&mut reader, host.id, 20).await.unwrap();
    assert_eq!(own.len(), 3);
    let plans = notices.take();
    assert_uses(&plans, "operations_by_host");
    assert_no_scan_of(&plans, "operations");
    assert_eq!(newest_operations(&mut reader, 50).await.unwrap().len(), 50);
    let plans = notices.take();
    assert_uses(&plans, "operations_by_created_at");
    assert_no_scan_of(&plans, "operations");
}

async fn the_audit_trail_is_read_by_indexes(db: &Database, notices: &Notices, hosts: &[Host]) {
    let all = AuditFilter::default();
    let cases = [
        (all.clone(), "audit_by_at"),
        (
            AuditFilter {
                since: Some(at(100)),
                until: Some(at(130)),
                ..all.clone()
            },
            "audit_by_at",
        ),
        (
            AuditFilter {
                host_id: Some(hosts[50].id),
                ..all.clone()
            },
            "audit_by_host",
        ),
        (
            AuditFilter {
                actor: Some("person-7".to_owned()),
                ..all.clone()
            },
            "audit_by_actor",
        ),
        (
            AuditFilter {
                request_id: Some("req-7".to_owned()),
                ..all.clone()
            },
            "audit_by_request",
        ),
    ];
    let mut reader = db.reader();
    for (filter, index) in cases {
        let first = audit_page(&mut reader, &filter, None, 1).await.unwrap().remove(0);
        for after in [None, Some(&first)] {
            audit_page(&mut reader, &filter, after, 50).await.unwrap();
            let plans = notices.take();
            assert_uses(&plans, index);
            assert_no_scan_of(&plans, "audit");
        }
    }
}
