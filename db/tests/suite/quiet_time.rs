//! Whether a segment has been quiet since its storm brake held a fence.

use ringfence_core::{EventKind, Host, Timestamp};
use ringfence_db::{NewEvent, append_events, insert_segment, segment_not_quiet_since};

use crate::rig::Rig;
use crate::site::{add_hosts, at, event, segment, update_host};

crate::stories!(quiet_time:
    a_segment_is_not_quiet_while_its_other_hosts_change_after_the_brake_has_held,
    more_changes_than_are_looked_at_are_no_quiet_time,
);

const QUIET_S: u32 = 60;

/// Hosts of two segments: two of one, and one of the other.
async fn hosts(rig: &Rig) -> [Host; 3] {
    let mut tx = rig.db.begin().await.unwrap();
    let mut all = Vec::new();
    for (name, hosts) in [("rack-1", &["a", "b"][..]), ("rack-2", &["c"][..])] {
        let segment = segment(name);
        insert_segment(&mut tx, &segment).await.unwrap();
        all.extend(add_hosts(&mut tx, &segment, hosts).await);
    }
    tx.commit().await.unwrap();
    all.try_into().unwrap()
}

async fn brake(rig: &Rig, host: &Host, seconds: i64) {
    let host = Host {
        braked_at: Some(at(seconds)),
        ..host.clone()
    };
    update_host(&mut rig.db.reader(), &host, None).await.unwrap();
}

fn change(host: &Host, number: u64, seconds: i64) -> NewEvent {
    NewEvent {
        occurred_at: at(seconds),
        ..event(host, number)
    }
}

async fn write(rig: &Rig, events: &[NewEvent]) {
    append_events(&mut rig.db.reader(), events).await.unwrap();
}

async fn since(rig: &Rig, host: &Host, now: i64) -> Option<Timestamp> {
    segment_not_quiet_since(&mut rig.db.reader(), host, QUIET_S, at(now))
        .await
        .unwrap()
}

async fn a_segment_is_not_quiet_while_its_other_hosts_change_after_the_brake_has_held(rig: &Rig) {
    let [a, b, c] = hosts(rig).await;
    write(rig, &[change(&b, 1, 50)]).await;
    assert_eq!(since(rig, &a, 55).await, None, "no brake has held anything");
    brake(rig, &a, 100).await;
    assert_eq!(since(rig, &a, 110).await, Some(at(100)));
    let other = NewEvent {
        kind: EventKind::HostUpdated,
        ..change(&b, 2, 156)
    };
    let events = [other, change(&b, 3, 150), change(&a, 1, 155), change(&c, 1, 157)];
    write(rig, &events).await;
    assert_eq!(
        since(rig, &a, 158).await,
        Some(at(150)),
        "its own changes count for nothing"
    );
    assert_eq!(since(rig, &b, 158).await, Some(at(155)));
    assert_eq!(since(rig, &c, 158).await, None, "it is of another segment");
    assert_eq!(since(rig, &a, 209).await, Some(at(150)));
    assert_eq!(since(rig, &a, 210).await, None);
    // Once it was quiet for so long, the storm is over, until the brake holds again.
    write(rig, &[change(&b, 4, 211)]).await;
    assert_eq!(since(rig, &a, 212).await, None);
    brake(rig, &b, 220).await;
    assert_eq!(since(rig, &a, 230).await, Some(at(220)));
}

async fn more_changes_than_are_looked_at_are_no_quiet_time(rig: &Rig) {
    let [a, b, _] = hosts(rig).await;
    brake(rig, &a, 0).await;
    // The oldest that is looked at comes long after the brake, and nothing is known of the time between.
    let events: Vec<NewEvent> = (0..1_200)
        .map(|n| change(&b, n + 1, 100 + i64::try_from(n).unwrap() / 40))
        .collect();
    write(rig, &events).await;
    assert_eq!(since(rig, &a, 130).await, Some(at(129)));
    assert_eq!(since(rig, &a, 189).await, None);
}
