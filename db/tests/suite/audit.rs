//! The audit trail.

use ringfence_core::{HostId, Timestamp};
use ringfence_db::{
    AuditEntry, AuditFilter, AuditRow, append_audit, append_audit_lines, audit_page, audit_row, removed_host,
};
use serde_json::json;
use uuid::Uuid;

use crate::rig::Rig;
use crate::site::{at, one_host};

crate::stories!(audit:
    the_newest_line_comes_first,
    lines_of_one_change_keep_their_order,
    a_line_is_read_as_it_was_written,
    each_filter_selects_lines,
    filters_are_combined,
    the_audit_trail_is_read_in_pages,
    a_removed_host_is_found_by_its_last_name,
    an_audit_line_cannot_be_changed,
    retention_removes_what_is_older_than_its_bound,
    the_bound_of_retention_ends_with_its_transaction,
);

pub fn line(action: &str) -> AuditEntry {
    AuditEntry {
        at: at(0),
        actor: "anna".to_owned(),
        origin: None,
        request_id: None,
        action: action.to_owned(),
        target: None,
        host_id: None,
        detail: json!({}),
    }
}

async fn write(rig: &Rig, entry: AuditEntry) {
    append_audit(&mut rig.db.reader(), &entry).await.unwrap();
}

async fn read(rig: &Rig, filter: &AuditFilter) -> Vec<AuditRow> {
    audit_page(&mut rig.db.reader(), filter, None, 1000)
        .await
        .unwrap()
}

pub async fn actions(rig: &Rig, filter: &AuditFilter) -> Vec<String> {
    read(rig, filter)
        .await
        .into_iter()
        .map(|row| row.entry.action)
        .collect()
}

fn all() -> AuditFilter {
    AuditFilter::default()
}

/// Two lines of one moment: the one that was written later comes first.
async fn the_newest_line_comes_first(rig: &Rig) {
    for (action, seconds) in [("one", 0), ("two", 0), ("four", 9), ("three", 5)] {
        write(
            rig,
            AuditEntry {
                at: at(seconds),
                ..line(action)
            },
        )
        .await;
    }
    assert_eq!(actions(rig, &all()).await, ["four", "three", "two", "one"]);
}

async fn lines_of_one_change_keep_their_order(rig: &Rig) {
    // More lines than one statement takes.
    let lines: Vec<_> = (0..250).map(|n| line(&format!("step-{n}"))).collect();
    append_audit_lines(&mut rig.db.reader(), &lines).await.unwrap();
    let mut kept: Vec<_> = read(rig, &all()).await.into_iter().map(|row| row.entry).collect();
    kept.reverse();
    assert_eq!(kept, lines);
}

async fn a_line_is_read_as_it_was_written(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let entry = AuditEntry {
        origin: Some("192.0.2.7".to_owned()),
        request_id: Some("req-1".to_owned()),
        target: Some(host.name.clone()),
        host_id: Some(host.id),
        detail: json!({ "reason": "Stromausfall in Zelle 7 – bestätigt", "generation": 3 }),
        ..line("host.confirm-fenced")
    };
    write(rig, entry.clone()).await;
    let row = read(rig, &all()).await.remove(0);
    assert_eq!(row.entry, entry);
    assert_eq!(
        audit_row(&mut rig.db.reader(), row.id).await.unwrap(),
        Some(row.clone())
    );
    assert_eq!(audit_row(&mut rig.db.reader(), row.id + 1).await.unwrap(), None);
}

async fn each_filter_selects_lines(rig: &Rig) {
    let host = HostId(Uuid::new_v4());
    let at_s = |seconds| Some(at(seconds));
    let lines = [
        line("host.created"),
        AuditEntry {
            host_id: Some(host),
            ..line("host.fenced")
        },
        AuditEntry {
            actor: "bert".to_owned(),
            ..line("method.created")
        },
        AuditEntry {
            request_id: Some("req-1".to_owned()),
            ..line("hostile")
        },
        AuditEntry {
            at: at(60),
            ..line("plan.created")
        },
        AuditEntry {
            at: at(61),
            ..line("plan.deleted")
        },
    ];
    for entry in lines {
        write(rig, entry).await;
    }
    let prefix = |prefix: &str| AuditFilter {
        action_prefix: Some(prefix.to_owned()),
        ..all()
    };
    let cases: &[(AuditFilter, &[&str])] = &[
        (
            AuditFilter {
                host_id: Some(host),
                ..all()
            },
            &["host.fenced"],
        ),
        (
            AuditFilter {
                actor: Some("bert".to_owned()),
                ..all()
            },
            &["method.created"],
        ),
        (
            AuditFilter {
                request_id: Some("req-1".to_owned()),
                ..all()
            },
            &["hostile"],
        ),
        (prefix("host."), &["host.fenced", "host.created"]),
        (prefix("host"), &["hostile", "host.fenced", "host.created"]),
        (prefix("plan.created"), &["plan.created"]),
        (prefix("%"), &[]),
        (
            prefix(""),
            &[
                "plan.deleted",
                "plan.created",
                "hostile",
                "method.created",
                "host.fenced",
                "host.created",
            ],
        ),
        (
            AuditFilter {
                since: at_s(61),
                ..all()
            },
            &["plan.deleted"],
        ),
        (
            AuditFilter {
                since: at_s(1),
                until: at_s(61),
                ..all()
            },
            &["plan.created"],
        ),
    ];
    for (filter, expected) in cases {
        assert_eq!(&actions(rig, filter).await, expected, "{filter:?}");
    }
}

async fn filters_are_combined(rig: &Rig) {
    let host = HostId(Uuid::new_v4());
    let wanted = AuditEntry {
        at: at(5),
        host_id: Some(host),
        request_id: Some("req-1".to_owned()),
        ..line("operation.cancel")
    };
    let others = [
        AuditEntry {
            at: at(4),
            ..wanted.clone()
        },
        AuditEntry {
            at: at(6),
            ..wanted.clone()
        },
        AuditEntry {
            actor: "bert".to_owned(),
            ..wanted.clone()
        },
        AuditEntry {
            host_id: None,
            ..wanted.clone()
        },
        AuditEntry {
            request_id: None,
            ..wanted.clone()
        },
        AuditEntry {
            action: "host.fenced".to_owned(),
            ..wanted.clone()
        },
    ];
    for entry in others {
        write(rig, entry).await;
    }
    write(rig, wanted.clone()).await;
    let filter = AuditFilter {
        host_id: Some(host),
        actor: Some("anna".to_owned()),
        action_prefix: Some("operation.".to_owned()),
        request_id: Some("req-1".to_owned()),
        global_request_id: None,
        since: Some(at(5)),
        until: Some(at(6)),
    };
    let found = read(rig, &filter).await;
    assert_eq!(
        found.into_iter().map(|row| row.entry).collect::<Vec<_>>(),
        [wanted]
    );
}

/// Several lines share each moment, so that a page can end between two of them.
async fn the_audit_trail_is_read_in_pages(rig: &Rig) {
    for n in 0..10 {
        let actor = if n == 4 { "bert" } else { "anna" };
        write(
            rig,
            AuditEntry {
                at: at(n / 4),
                actor: actor.to_owned(),
                ..line(&format!("n{n}"))
            },
        )
        .await;
    }
    let of_anna = AuditFilter {
        actor: Some("anna".to_owned()),
        ..all()
    };
    for (filter, limit) in [(all(), 1), (all(), 3), (all(), 10), (of_anna, 2)] {
        let mut seen = Vec::new();
        let mut last = None;
        loop {
            let page = audit_page(&mut rig.db.reader(), &filter, last.as_ref(), limit)
                .await
                .unwrap();
            assert!(page.len() <= limit as usize);
            let Some(end) = page.last() else { break };
            last = Some(end.clone());
            seen.extend(page.into_iter().map(|row| row.entry.action));
            assert!(seen.len() <= 10, "the pages do not end");
        }
        assert_eq!(seen, actions(rig, &filter).await, "{limit} a page");
    }
}

async fn a_removed_host_is_found_by_its_last_name(rig: &Rig) {
    let [first, second] = [HostId(Uuid::new_v4()), HostId(Uuid::new_v4())];
    for (host, action) in [
        (first, "host.deleted"),
        (second, "host.created"),
        (second, "host.deleted"),
    ] {
        write(
            rig,
            AuditEntry {
                host_id: Some(host),
                target: Some("node-7".to_owned()),
                ..line(action)
            },
        )
        .await;
    }
    let mut reader = rig.db.reader();
    assert_eq!(removed_host(&mut reader, "node-7").await.unwrap(), Some(second));
    assert_eq!(removed_host(&mut reader, "node-8").await.unwrap(), None);
}

async fn assert_refused(rig: &Rig, sql: &str) {
    let before = read(rig, &all()).await;
    let error = rig.past(sql).await.expect_err(sql).to_string();
    assert!(error.contains("audit"), "{sql}: {error}");
    assert_eq!(read(rig, &all()).await, before, "{sql}");
}

async fn an_audit_line_cannot_be_changed(rig: &Rig) {
    write(rig, line("host.fenced")).await;
    let id = read(rig, &all()).await[0].id;
    assert_refused(rig, "UPDATE audit SET actor = 'another'").await;
    assert_refused(rig, "UPDATE audit SET detail = '{}'").await;
    assert_refused(rig, "DELETE FROM audit").await;
    assert_refused(rig, &format!("DELETE FROM audit WHERE position = {id}")).await;
    if rig.db.is_sqlite() {
        let columns = "(position, at, actor, action, detail)";
        assert_refused(
            rig,
            &format!("REPLACE INTO audit {columns} VALUES ({id}, 0, 'x', 'y', '{{}}')"),
        )
        .await;
    } else {
        assert_refused(rig, "TRUNCATE audit CASCADE").await;
    }
    // Lines can still be added.
    write(rig, line("host.unfenced")).await;
    assert_eq!(actions(rig, &all()).await, ["host.unfenced", "host.fenced"]);
}

/// A time in the format of the rig's database.
fn moment(rig: &Rig, at: Timestamp) -> String {
    if rig.db.is_sqlite() {
        at.timestamp_micros().to_string()
    } else {
        format!("'{}'", at.to_rfc3339())
    }
}

async fn retention_removes_what_is_older_than_its_bound(rig: &Rig) {
    for (action, seconds) in [("old", 0), ("older", -60), ("at the bound", 10), ("new", 11)] {
        write(
            rig,
            AuditEntry {
                at: at(seconds),
                ..line(action)
            },
        )
        .await;
    }
    let bound = format!(
        "INSERT INTO audit_retention (older_than) VALUES ({})",
        moment(rig, at(10))
    );
    let end = "DELETE FROM audit_retention";
    assert_refused(rig, &format!("BEGIN; {bound}; DELETE FROM audit; {end}; COMMIT")).await;
    let older = format!("DELETE FROM audit WHERE at < {}", moment(rig, at(10)));
    rig.past(&format!("BEGIN; {bound}; {older}; {end}; COMMIT"))
        .await
        .unwrap();
    assert_eq!(actions(rig, &all()).await, ["new", "at the bound"]);
    // The bound allows the removal of no other line.
    assert_refused(rig, "DELETE FROM audit").await;
}

async fn the_bound_of_retention_ends_with_its_transaction(rig: &Rig) {
    write(rig, line("old")).await;
    let bound = format!(
        "INSERT INTO audit_retention (older_than) VALUES ({})",
        moment(rig, at(10))
    );
    let kept = rig.past(&format!("BEGIN; {bound}; COMMIT")).await;
    assert!(kept.is_err(), "the database committed a bound");
    assert_refused(rig, "DELETE FROM audit").await;
    let id = read(rig, &all()).await[0].id;
    let lasting = format!(
        "INSERT INTO audit_retention (older_than, never) VALUES ({}, {id})",
        moment(rig, at(10))
    );
    assert!(
        rig.past(&lasting).await.is_err(),
        "the database committed a lasting bound"
    );
}
