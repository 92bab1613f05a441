//! The audit trail.

use ringfence_db::{AuditEntry, append_audit, append_audit_lines, list_audit};
use serde_json::json;

use crate::rig::Rig;
use crate::site::{at, one_host};

crate::stories!(audit:
    the_newest_line_comes_first,
    lines_of_one_change_keep_their_order,
    a_line_is_read_as_it_was_written,
);

fn line(action: &str) -> AuditEntry {
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

async fn the_newest_line_comes_first(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    for action in ["one", "two", "three"] {
        let entry = AuditEntry {
            host_id: Some(host.id),
            ..line(action)
        };
        append_audit(&mut rig.db.reader(), &entry).await.unwrap();
        append_audit(&mut rig.db.reader(), &line("something else"))
            .await
            .unwrap();
    }
    let actions = |entries: Vec<AuditEntry>| entries.into_iter().map(|e| e.action).collect::<Vec<_>>();
    let mut reader = rig.db.reader();
    assert_eq!(
        actions(list_audit(&mut reader, Some(host.id), 10).await.unwrap()),
        ["three", "two", "one"]
    );
    assert_eq!(
        actions(list_audit(&mut reader, Some(host.id), 1).await.unwrap()),
        ["three"]
    );
    assert_eq!(
        actions(list_audit(&mut reader, None, 2).await.unwrap()),
        ["something else", "three"]
    );
}

async fn lines_of_one_change_keep_their_order(rig: &Rig) {
    // More than one statement takes.
    let lines: Vec<_> = (0..250).map(|n| line(&format!("step-{n}"))).collect();
    append_audit_lines(&mut rig.db.reader(), &lines).await.unwrap();
    let mut read = list_audit(&mut rig.db.reader(), None, 1000).await.unwrap();
    read.reverse();
    assert_eq!(read, lines);
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
    append_audit(&mut rig.db.reader(), &entry).await.unwrap();
    assert_eq!(list_audit(&mut rig.db.reader(), None, 1).await.unwrap(), [entry]);
}
