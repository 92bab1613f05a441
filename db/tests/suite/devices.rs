//! Devices: one command at a time.

use ringfence_core::{AttemptId, Timestamp};
use ringfence_db::{DbError, DeviceClaim, Run, claim_devices};

use crate::rig::Rig;
use crate::site::{at, attempt};

crate::stories!(devices:
    a_device_takes_one_attempt_at_a_time,
    the_same_attempt_may_ask_again,
    a_claim_that_ran_out_is_anybodys,
    a_claim_from_before_the_clock_was_set_back_is_anybodys,
    what_an_attempt_took_is_given_back_together,
    of_many_at_once_one_gets_the_device,
    a_claim_in_a_transaction_that_is_dropped_was_never_made,
);

async fn a_device_takes_one_attempt_at_a_time(rig: &Rig) {
    let mut reader = rig.db.reader();
    assert!(
        claim_device(&mut reader, "bmc-1", attempt(1), at(0), at(30))
            .await
            .unwrap()
    );
    assert!(
        !claim_device(&mut reader, "bmc-1", attempt(2), at(29), at(60))
            .await
            .unwrap()
    );
    assert!(
        claim_device(&mut reader, "bmc-2", attempt(2), at(29), at(60))
            .await
            .unwrap()
    );
    assert!(
        !claim_device(&mut reader, "bmc-1", attempt(2), at(29), at(60))
            .await
            .unwrap()
    );
}

async fn the_same_attempt_may_ask_again(rig: &Rig) {
    let mut reader = rig.db.reader();
    assert!(
        claim_device(&mut reader, "bmc-1", attempt(1), at(0), at(30))
            .await
            .unwrap()
    );
    assert!(
        claim_device(&mut reader, "bmc-1", attempt(1), at(10), at(40))
            .await
            .unwrap()
    );
    assert!(
        !claim_device(&mut reader, "bmc-1", attempt(2), at(35), at(60))
            .await
            .unwrap(),
        "it was prolonged"
    );
}

async fn a_claim_that_ran_out_is_anybodys(rig: &Rig) {
    let mut reader = rig.db.reader();
    assert!(
        claim_device(&mut reader, "bmc-1", attempt(1), at(0), at(30))
            .await
            .unwrap()
    );
    assert!(
        claim_device(&mut reader, "bmc-1", attempt(2), at(30), at(60))
            .await
            .unwrap()
    );
    // It is another's now.
    ringfence_db::release_devices(&mut reader, &[attempt(1)])
        .await
        .unwrap();
    assert!(
        !claim_device(&mut reader, "bmc-1", attempt(3), at(31), at(60))
            .await
            .unwrap()
    );
}

async fn a_claim_from_before_the_clock_was_set_back_is_anybodys(rig: &Rig) {
    let mut reader = rig.db.reader();
    let an_hour = 3_600;
    let taken = claim_device(&mut reader, "bmc-1", attempt(1), at(an_hour), at(an_hour + 10)).await;
    assert!(taken.unwrap());
    assert!(
        claim_device(&mut reader, "bmc-1", attempt(2), at(0), at(10))
            .await
            .unwrap()
    );
}

async fn what_an_attempt_took_is_given_back_together(rig: &Rig) {
    let mut reader = rig.db.reader();
    for device in ["pdu-1", "pdu-2"] {
        assert!(
            claim_device(&mut reader, device, attempt(1), at(0), at(30))
                .await
                .unwrap()
        );
    }
    assert!(
        claim_device(&mut reader, "pdu-3", attempt(2), at(0), at(30))
            .await
            .unwrap()
    );
    // The second time there is nothing to give back.
    for _ in 0..2 {
        ringfence_db::release_devices(&mut reader, &[attempt(1)])
            .await
            .unwrap();
    }
    for device in ["pdu-1", "pdu-2"] {
        assert!(
            claim_device(&mut reader, device, attempt(3), at(1), at(30))
                .await
                .unwrap()
        );
    }
    assert!(
        !claim_device(&mut reader, "pdu-3", attempt(3), at(1), at(30))
            .await
            .unwrap()
    );
}

async fn of_many_at_once_one_gets_the_device(rig: &Rig) {
    let claims: Vec<_> = (1..=8)
        .map(|n| {
            let db = rig.db.clone();
            tokio::spawn(async move {
                let mut tx = db.begin().await.unwrap();
                let won = claim_device(&mut tx, "bmc-1", attempt(n), at(0), at(30))
                    .await
                    .unwrap();
                tokio::task::yield_now().await;
                tx.commit().await.unwrap();
                won
            })
        })
        .collect();
    let mut winners = 0;
    for claim in claims {
        winners += u32::from(claim.await.unwrap());
    }
    assert_eq!(winners, 1);
}

async fn a_claim_in_a_transaction_that_is_dropped_was_never_made(rig: &Rig) {
    let mut tx = rig.db.begin().await.unwrap();
    assert!(
        claim_device(&mut tx, "bmc-1", attempt(1), at(0), at(30))
            .await
            .unwrap()
    );
    drop(tx);
    assert!(
        claim_device(&mut rig.db.reader(), "bmc-1", attempt(2), at(1), at(30))
            .await
            .unwrap()
    );
}

/// Takes one device.
async fn claim_device(
    run: &mut impl Run,
    device: &str,
    attempt: AttemptId,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool, DbError> {
    let claim = DeviceClaim {
        device: device.to_owned(),
        attempt,
        until,
    };
    Ok(claim_devices(run, vec![claim], now).await?.contains(device))
}
