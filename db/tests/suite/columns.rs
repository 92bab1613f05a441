//! Statements name the columns that they read: a column that a migration adds is nothing to services that run.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use ringfence_core::PlanScope;
use ringfence_db::{
    AuditEntry, AuditFilter, CheckOutcome, Database, DeliveryFilter, DeliveryKind, DeliveryStatus,
    HostFilter, Kept, KeyName, OperationFilter, Page, SharedDevice, SortKey, add_check_targets,
    add_shared_devices, append_audit, append_events, append_outbox, audit_page, audit_row, begin_with_hosts,
    check_targets, deliveries_after, deliveries_page, delivery, event_numbered, events_after,
    hold_subscription, host_row, hosts_page, insert_host, insert_key, insert_method, insert_plan,
    insert_subscription, key_row, list_methods, list_plans, list_segments, list_subscriptions, load_state,
    method, method_checks_page, methods_by_name, number_events, old_rows, operation, operations_page, plan,
    plan_for, save_check, save_deliveries, segment, shared_devices, shared_devices_of, subscription,
    take_checks, take_deliveries, take_outbox,
};
use uuid::Uuid;

use crate::rig::Rig;
use crate::site::{at, done, event, fence, fence_by_power, host, insert_operation, one_host};
use crate::{checks, configuration, outbox, subscriptions};

crate::stories!(columns: statements_stay_prepared_when_columns_are_added);

/// What rows are read from.
const TABLES: [&str; 14] = [
    "audit",
    "deliveries",
    "events",
    "hosts",
    "idempotency_keys",
    "method_checks",
    "methods",
    "operations",
    "outbox",
    "plans",
    "proofs",
    "segments",
    "shared_devices",
    "subscriptions",
];

const NAME: KeyName<'static> = KeyName {
    caller: "admin:alice",
    key: "k",
};

/// A row at least in every table.
struct Site {
    fenced: ringfence_core::Host,
    live: ringfence_core::Operation,
    segment: ringfence_core::Segment,
    method: ringfence_core::Method,
    plan: ringfence_core::Plan,
    subscription: ringfence_core::Subscription,
    delivery: Uuid,
}

async fn site(db: &Database) -> Site {
    let mut run = db.reader();
    let (segment, fenced) = one_host(db).await;
    append_events(&mut run, &[event(&fenced, 1), event(&fenced, 2)])
        .await
        .unwrap();
    while number_events(db).await.unwrap() > 0 {}
    insert_operation(&mut run, &done(&fence(&fenced, 1)))
        .await
        .unwrap();
    let (fenced, _) = fence_by_power(db, &fenced, 2).await;
    let other = host("node-2", &segment);
    insert_host(&mut run, &other).await.unwrap();
    let live = fence(&other, 1);
    insert_operation(&mut run, &live).await.unwrap();

    let method = configuration::method_named("ipmi");
    insert_method(&mut run, &method).await.unwrap();
    let plan = configuration::plan_named("all", PlanScope::Default);
    insert_plan(&mut run, &plan).await.unwrap();
    let shared = SharedDevice {
        id: Uuid::new_v4(),
        host_id: other.id,
        method_id: method.id,
        with_host_id: fenced.id,
        with_method_id: method.id,
    };
    add_shared_devices(db, &[shared]).await.unwrap();
    let target = checks::target(&method, at(0));
    add_check_targets(db, std::slice::from_ref(&target))
        .await
        .unwrap();
    let answer = checks::answer(CheckOutcome::Confirmed);
    save_check(&mut run, &target, &answer, at(1)).await.unwrap();

    let subscription = subscriptions::new("pager");
    insert_subscription(&mut run, &subscription, 1).await.unwrap();
    let test = subscriptions::delivery(&subscription, DeliveryKind::Test, None, 0);
    let over = subscriptions::delivery(&subscription, DeliveryKind::Test, None, 0);
    let deliveries = [
        subscriptions::delivery(&subscription, DeliveryKind::Event, Some(1), 0),
        test,
        subscriptions::done(&over, DeliveryStatus::Delivered),
    ];
    save_deliveries(&mut run, &deliveries).await.unwrap();

    append_outbox(&mut run, &[outbox::message(0)]).await.unwrap();
    insert_key(&mut run, NAME, "digest", Uuid::from_u128(1), at(0), at(60))
        .await
        .unwrap();
    append_audit(&mut run, &line()).await.unwrap();
    Site {
        delivery: deliveries[0].id,
        fenced,
        live,
        segment,
        method,
        plan,
        subscription,
    }
}

fn line() -> AuditEntry {
    AuditEntry {
        at: at(0),
        actor: "anna".to_owned(),
        origin: None,
        request_id: None,
        action: "host.created".to_owned(),
        target: None,
        host_id: None,
        detail: serde_json::Value::Null,
    }
}

/// What somebody read, in words. It was read, and there was something.
fn read<T: Debug>(what: &str, rows: Result<T, ringfence_db::DbError>) -> String {
    let rows = match rows {
        Ok(rows) => format!("{rows:?}"),
        Err(e) => panic!("{what} cannot be read: {e:?}"),
    };
    assert!(
        rows != "[]" && rows != "None" && rows != "{}",
        "{what}: nothing was read"
    );
    format!("{what}: {rows}")
}

/// Everything that is read without being changed, by each of its ways.
async fn all_that_stays(db: &Database, site: &Site) -> Vec<String> {
    let run = &mut db.reader();
    let page = Page {
        limit: 10,
        marker: None,
        sort: vec![SortKey::CreatedAt.ascending()],
    };
    let mut all = Vec::new();
    for of in [&site.fenced.name, &site.fenced.id.0.to_string()] {
        all.push(read("a host's state", load_state(run, of).await));
        all.push(read("a host", host_row(run, of).await));
    }
    all.push(read(
        "hosts",
        hosts_page(run, &HostFilter::default(), &page).await,
    ));
    all.push(read("an operation", operation(run, site.live.id.0).await));
    let filter = OperationFilter::default();
    all.push(read("operations", operations_page(run, &filter, &page).await));
    for of in [&site.segment.name, &site.segment.id.0.to_string()] {
        all.push(read("a segment", segment(run, of).await));
    }
    all.push(read("segments", list_segments(run, 9).await));
    for of in [&site.method.name, &site.method.id.0.to_string()] {
        all.push(read("a method", method(run, of).await));
    }
    all.push(read("methods", list_methods(run, 9).await));
    let names = [site.method.name.clone()];
    all.push(read("methods by name", methods_by_name(run, names).await));
    for of in [&site.plan.name, &site.plan.id.0.to_string()] {
        all.push(read("a plan", plan(run, of).await));
    }
    all.push(read("plans", list_plans(run, 9).await));
    all.push(read("a host's plan", plan_for(run, "node-1", None).await));
    for of in [&site.subscription.name, &site.subscription.id.0.to_string()] {
        all.push(read("a subscription", subscription(run, of).await));
    }
    all.push(read("subscriptions", list_subscriptions(run, 9).await));
    all.push(read("events", events_after(run, 0, None, 9).await));
    all.push(read("an event", event_numbered(run, 1).await));
    let filter = AuditFilter::default();
    let lines = audit_page(run, &filter, None, 9).await;
    all.push(read(
        "a line",
        audit_row(run, lines.as_ref().unwrap()[0].id).await,
    ));
    all.push(read("the audit trail", lines));
    all.push(read("a key", key_row(run, NAME).await));
    all.push(read("shared devices", shared_devices(run, 9).await));
    all.push(read("a host's", shared_devices_of(run, site.live.host_id).await));
    all
}

async fn deliveries_and_checks(db: &Database, site: &Site) {
    let run = &mut db.reader();
    let (to, filter) = (site.subscription.id, DeliveryFilter::default());
    read("deliveries", deliveries_page(run, to, &filter, None, 9).await);
    read("open deliveries", deliveries_after(run, to, 0, 9).await);
    read("a delivery", delivery(run, to, site.delivery).await);
    read("questions", check_targets(run, None, 9).await);
    let answers = method_checks_page(run, site.method.id, None, None, 9).await;
    read("answers", answers);
}

/// What is locked or taken, at a time at which nobody has it any more.
async fn all_that_is_taken(db: &Database, site: &Site, seconds: i64) {
    let (now, until) = (at(seconds), at(seconds + 10));
    let hosts = [site.fenced.id, site.live.host_id];
    let locked = begin_with_hosts(db, &hosts).await.unwrap();
    assert_eq!(locked.states.len(), 2);
    assert_eq!(locked.read_at.is_some(), !db.is_sqlite());
    drop(locked);
    read("the outbox", take_outbox(db, now, until, 9).await);
    read("due deliveries", take_deliveries(db, now, until, 9).await);
    read("due questions", take_checks(db, now, until, 9).await);
    let run = &mut db.reader();
    let held = hold_subscription(run, site.subscription.id, "e", now, until).await;
    read("a held subscription", held);
    for what in Kept::ALL {
        read("what is old", old_rows(db, what, at(1000), 9).await);
    }
}

/// On one connection, so that each statement was prepared before.
async fn statements_stay_prepared_when_columns_are_added(rig: &Rig) {
    let db = Database::open(&rig.url, 1).await.unwrap();
    let site = site(&rig.db).await;
    let before = all_that_stays(&db, &site).await;
    deliveries_and_checks(&db, &site).await;
    all_that_is_taken(&db, &site, 20).await;
    for table in TABLES {
        rig.past(&format!(
            "ALTER TABLE {table} ADD COLUMN newer text NOT NULL DEFAULT 'x'"
        ))
        .await
        .unwrap();
    }
    assert_eq!(all_that_stays(&db, &site).await, before);
    deliveries_and_checks(&db, &site).await;
    all_that_is_taken(&db, &site, 60).await;
    // What an older build writes has the default.
    append_audit(&mut db.reader(), &line()).await.unwrap();
    insert_host(&mut db.reader(), &host("node-3", &site.segment))
        .await
        .unwrap();
    db.close().await;
}

/// The places of a program's text where a statement reads, or gives back, whatever columns there are.
fn whole_rows(text: &str) -> Vec<String> {
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    let text: Vec<_> = text.lines().filter(|line| !is_comment(line)).collect();
    let text = text.join(" ");
    let stars = text.match_indices('*').map(|(at, _)| text.split_at(at));
    let of_rows = stars.filter(|(before, after)| {
        let words = before.trim_end().to_ascii_uppercase();
        let of_a_table = before
            .strip_suffix('.')
            .is_some_and(|table| table.ends_with(|c: char| c.is_alphanumeric() || "_}\"".contains(c)));
        let is_last = after[1..].trim_start().to_ascii_uppercase();
        let after_others = words.ends_with(',') && (is_last.starts_with("FROM ") || is_last.starts_with('"'));
        let of_all = ["SELECT", "DISTINCT", "RETURNING"]
            .iter()
            .any(|word| words.ends_with(word));
        of_a_table || after_others || of_all
    });
    let near = |(before, after): (&str, &str)| {
        let before: String = before.chars().rev().take(30).collect();
        let after: String = after.chars().take(30).collect();
        before.chars().rev().collect::<String>() + &after
    };
    of_rows.map(near).collect()
}

fn programs(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let files = files
        .into_iter()
        .filter(|path| path.extension().is_some_and(|end| end == "rs"));
    files
        .chain(folders.iter().flat_map(|folder| programs(folder)))
        .collect()
}

#[test]
fn no_statement_reads_or_returns_whatever_columns_there_are() {
    let programs = programs(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(programs.len() > 20, "{programs:?}");
    for path in programs {
        let found = whole_rows(&std::fs::read_to_string(&path).unwrap());
        assert!(
            found.is_empty(),
            "{} reads whole rows; name the columns: {found:?}",
            path.display()
        );
    }
}

#[test]
fn a_statement_that_reads_whole_rows_is_found_however_it_is_written() {
    for wrong in [
        "\"SELECT * FROM hosts\"",
        "\"select\n    * from hosts\"",
        "\"SELECT DISTINCT * FROM hosts\"",
        "\"SELECT hosts.*, segments.name FROM hosts\"",
        "\"SELECT {table}.* FROM {table}\"",
        "\"SELECT 1 AS one, * FROM hosts\"",
        "\"UPDATE hosts SET zone = $1 RETURNING *\"",
        "\"UPDATE hosts SET zone = $1 RETURNING id, *\"",
    ] {
        assert_eq!(whole_rows(wrong).len(), 1, "{wrong}");
    }
    for right in [
        "\"SELECT count(*) AS n FROM hosts\"",
        "\"SELECT id, count(*) FROM hosts\"",
        "    // as SELECT * would",
        "Page { sort, ..*page }",
        "call(first, *second)",
        "let n = rows * columns;",
    ] {
        assert_eq!(whole_rows(right), Vec::<String>::new(), "{right}");
    }
}
