//! Devices: one command at a time.

use ringfence_core::AttemptId;
use ringfence_db::{Changes, Database, DeviceLease, Ended, Locking, NotHad};

use crate::rig::Rig;
use crate::site::{at, attempt, commit};

crate::stories!(devices:
    a_device_takes_one_attempt_at_a_time,
    an_attempt_can_prolong_its_lease,
    a_lease_that_has_run_out_can_be_taken,
    a_lease_from_before_the_clock_was_set_back_can_be_taken,
    the_leases_of_an_attempt_end_together,
    one_of_many_concurrent_attempts_gets_the_device,
    a_lease_in_a_refused_transaction_is_not_made,
);

async fn a_device_takes_one_attempt_at_a_time(rig: &Rig) {
    assert!(lease(&rig.db, "bmc-1", attempt(1), 0, 30).await);
    assert!(!lease(&rig.db, "bmc-1", attempt(2), 29, 60).await);
    assert!(lease(&rig.db, "bmc-2", attempt(2), 29, 60).await);
    assert!(!lease(&rig.db, "bmc-1", attempt(2), 29, 60).await);
}

async fn an_attempt_can_prolong_its_lease(rig: &Rig) {
    assert!(lease(&rig.db, "bmc-1", attempt(1), 0, 30).await);
    assert!(lease(&rig.db, "bmc-1", attempt(1), 10, 40).await);
    assert!(
        !lease(&rig.db, "bmc-1", attempt(2), 35, 60).await,
        "the lease was prolonged"
    );
}

async fn a_lease_that_has_run_out_can_be_taken(rig: &Rig) {
    assert!(lease(&rig.db, "bmc-1", attempt(1), 0, 30).await);
    assert!(lease(&rig.db, "bmc-1", attempt(2), 30, 60).await);
    // The device is leased to attempt 2 now.
    release(&rig.db, &[attempt(1)]).await;
    assert!(!lease(&rig.db, "bmc-1", attempt(3), 31, 60).await);
}

async fn a_lease_from_before_the_clock_was_set_back_can_be_taken(rig: &Rig) {
    let an_hour = 3_600;
    assert!(lease(&rig.db, "bmc-1", attempt(1), an_hour, an_hour + 10).await);
    assert!(lease(&rig.db, "bmc-1", attempt(2), 0, 10).await);
}

async fn the_leases_of_an_attempt_end_together(rig: &Rig) {
    for device in ["pdu-1", "pdu-2"] {
        assert!(lease(&rig.db, device, attempt(1), 0, 30).await);
    }
    assert!(lease(&rig.db, "pdu-3", attempt(2), 0, 30).await);
    // A second release has nothing to end.
    for _ in 0..2 {
        release(&rig.db, &[attempt(1)]).await;
    }
    for device in ["pdu-1", "pdu-2"] {
        assert!(lease(&rig.db, device, attempt(3), 1, 30).await);
    }
    assert!(!lease(&rig.db, "pdu-3", attempt(3), 1, 30).await);
}

async fn one_of_many_concurrent_attempts_gets_the_device(rig: &Rig) {
    let claims: Vec<_> = (1..=8)
        .map(|n| {
            let db = rig.db.clone();
            tokio::spawn(async move { lease(&db, "bmc-1", attempt(n), 0, 30).await })
        })
        .collect();
    let mut winners = 0;
    for claim in claims {
        winners += u32::from(claim.await.unwrap());
    }
    assert_eq!(winners, 1);
}

async fn a_lease_in_a_refused_transaction_is_not_made(rig: &Rig) {
    assert!(lease(&rig.db, "bmc-2", attempt(1), 0, 30).await);
    let changes = Changes {
        leases: vec![
            wanted("bmc-3", attempt(2), 1, 30),
            wanted("bmc-2", attempt(2), 1, 30),
            wanted("bmc-1", attempt(2), 1, 30),
        ],
        ..Changes::default()
    };
    let refused = Ended::Refused(NotHad {
        devices: vec!["bmc-2".to_owned()],
        ..NotHad::default()
    });
    assert_eq!(commit(&rig.db, &changes).await.unwrap(), refused);
    let begun = rig.db.begin_with_hosts(&[], Locking::Pessimistic).await.unwrap();
    drop(begun.transaction);
    for device in ["bmc-1", "bmc-3"] {
        assert!(lease(&rig.db, device, attempt(3), 1, 30).await);
    }
}

pub fn wanted(device: &str, attempt: AttemptId, from: i64, until: i64) -> DeviceLease {
    DeviceLease {
        device: device.to_owned(),
        attempt,
        from: at(from),
        until: at(until),
    }
}

/// Leases one device, in a transaction of its own, unless it is another attempt's.
pub async fn lease(db: &Database, device: &str, attempt: AttemptId, from: i64, until: i64) -> bool {
    let changes = Changes {
        leases: vec![wanted(device, attempt, from, until)],
        ..Changes::default()
    };
    matches!(commit(db, &changes).await.unwrap(), Ended::Committed { .. })
}

pub async fn release(db: &Database, attempts: &[AttemptId]) {
    let changes = Changes {
        released: attempts.to_vec(),
        ..Changes::default()
    };
    commit(db, &changes).await.unwrap();
}
