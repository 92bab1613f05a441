//! Permits: of each name there are only so many, whatever transactions have counted before.

use std::collections::BTreeMap;

use ringfence_core::{
    Applied, AppliedFencing, ConditionAction, FailureState, FencingKind, FencingPolicy, FrozenMethod,
    Generation, GroupCount, GroupCounts, GroupRule, Held, Host, MethodId, MethodTimes, Operation,
    OperationStatus, Permit, Resource, Ruling, Safeguard, Segment, SegmentId, Verdict, Work,
};
use ringfence_db::{
    Changes, Database, Ended, NewPermit, NotHad, delete_host, group_counts, hosts_gone_beside, insert_host,
    insert_segment, label_values, neighbourhood,
};

use uuid::Uuid;

use crate::rig::Rig;
use crate::site::{
    add_hosts, at, attempt, commit, done, fence, host, insert_operation, segment, sick, update_host,
    update_operation,
};

crate::stories!(permits:
    there_are_no_more_permits_than_may_be_held,
    a_permit_is_returned_and_can_be_taken_again,
    a_permit_of_a_minute_is_kept_when_its_operation_is_over,
    permits_of_one_transaction_are_counted_together,
    of_many_concurrent_transactions_no_more_get_a_permit_than_may_be_held,
    a_host_that_is_removed_returns_what_its_operations_hold,
    what_stands_around_a_host_is_counted,
    what_may_be_lost_beside_a_host_is_listed,
    the_hosts_of_a_group_are_counted_in_whichever_segment_they_are,
);

/// A host of this name with a fence that is under way.
async fn begun(rig: &Rig, name: &str) -> (Host, Operation) {
    let segment = segment(&format!("segment-{name}"));
    let mut tx = rig.db.begin().await.unwrap();
    insert_segment(&mut tx, &segment).await.unwrap();
    let host = add_hosts(&mut tx, &segment, &[name]).await.remove(0);
    tx.commit().await.unwrap();
    let operation = fence(&host, 1);
    insert_operation(&rig.db, &operation).await.unwrap();
    (host, operation)
}

fn permit(of: &str, at_most: u32) -> Permit {
    Permit {
        of: of.to_owned(),
        at_most,
        is_kept: false,
    }
}

fn wanted<'a>(operation: &Operation, permit: &'a Permit) -> NewPermit<'a> {
    NewPermit {
        operation_id: operation.id,
        permit,
    }
}

async fn take(db: &Database, operation: &Operation, permit: &Permit) -> Ended {
    let changes = Changes {
        permits: vec![wanted(operation, permit)],
        ..Changes::default()
    };
    commit(db, &changes).await.unwrap()
}

async fn give_back(db: &Database, operation: &Operation) {
    let changes = Changes {
        returned: vec![operation.id],
        ..Changes::default()
    };
    commit(db, &changes).await.unwrap();
}

fn without(operation: &Operation) -> Ended {
    Ended::Refused(NotHad {
        operations: vec![operation.id],
        ..NotHad::default()
    })
}

fn is_committed(ended: &Ended) -> bool {
    matches!(ended, Ended::Committed { .. })
}

async fn there_are_no_more_permits_than_may_be_held(rig: &Rig) {
    let (two, other) = (permit("rack", 2), permit("row", 1));
    let ((_, one), (_, second), (_, third)) = (
        begun(rig, "h1").await,
        begun(rig, "h2").await,
        begun(rig, "h3").await,
    );
    assert!(is_committed(&take(&rig.db, &one, &two).await));
    assert!(is_committed(&take(&rig.db, &second, &two).await));
    assert_eq!(take(&rig.db, &third, &two).await, without(&third));
    assert!(
        is_committed(&take(&rig.db, &third, &other).await),
        "of another name"
    );
    // A bound that was lowered meanwhile holds for those that come.
    assert_eq!(take(&rig.db, &third, &permit("rack", 1)).await, without(&third));
    assert!(is_committed(&take(&rig.db, &third, &permit("rack", 3)).await));
}

async fn a_permit_is_returned_and_can_be_taken_again(rig: &Rig) {
    let two = permit("rack", 2);
    let ((_, one), (_, second), (_, third)) = (
        begun(rig, "h1").await,
        begun(rig, "h2").await,
        begun(rig, "h3").await,
    );
    assert!(is_committed(&take(&rig.db, &one, &two).await));
    assert!(is_committed(&take(&rig.db, &second, &two).await));
    give_back(&rig.db, &one).await;
    give_back(&rig.db, &one).await;
    assert!(is_committed(&take(&rig.db, &third, &two).await));
    assert_eq!(take(&rig.db, &one, &two).await, without(&one));
}

async fn a_permit_of_a_minute_is_kept_when_its_operation_is_over(rig: &Rig) {
    let ((host, one), (_, second)) = (begun(rig, "h1").await, begun(rig, "h2").await);
    let single = Permit::of_minute(host.segment_id, at(0), 1);
    let by_segment = Permit::of_segment(host.segment_id, 1);
    for permit in [&single, &by_segment] {
        assert!(is_committed(&take(&rig.db, &one, permit).await));
    }
    give_back(&rig.db, &one).await;
    assert_eq!(take(&rig.db, &second, &single).await, without(&second));
    assert!(is_committed(&take(&rig.db, &second, &by_segment).await));
    let begun = async |now| {
        let around = neighbourhood(&mut rig.db.reader(), &host, at(0), now).await;
        around.unwrap().begun
    };
    assert_eq!((begun(at(1)).await, begun(at(61)).await), (1, 0));
    let next = Permit::of_minute(host.segment_id, at(61), 1);
    assert!(is_committed(&take(&rig.db, &second, &next).await));
}

async fn permits_of_one_transaction_are_counted_together(rig: &Rig) {
    let ((_, one), (_, second)) = (begun(rig, "h1").await, begun(rig, "h2").await);
    let single = permit("rack", 1);
    let changes = Changes {
        permits: vec![wanted(&one, &single), wanted(&second, &single)],
        ..Changes::default()
    };
    let Ended::Refused(not_had) = commit(&rig.db, &changes).await.unwrap() else {
        panic!("one of two has to go without");
    };
    assert_eq!(not_had.operations.len(), 1);
    assert!(
        is_committed(&take(&rig.db, &one, &single).await),
        "nothing of it was made"
    );
}

async fn of_many_concurrent_transactions_no_more_get_a_permit_than_may_be_held(rig: &Rig) {
    let mut tasks = Vec::new();
    for n in 0..8 {
        let (_, operation) = begun(rig, &format!("h{n}")).await;
        let db = rig.db.clone();
        tasks.push(tokio::spawn(async move {
            is_committed(&take(&db, &operation, &permit("rack", 3)).await)
        }));
    }
    let mut winners = 0;
    for task in tasks {
        winners += u32::from(task.await.unwrap());
    }
    // Two that find one number at one moment: one of them goes without, and asks again.
    assert!((1..=3).contains(&winners), "{winners}");
}

async fn a_host_that_is_removed_returns_what_its_operations_hold(rig: &Rig) {
    let single = permit("rack", 1);
    let ((gone, one), (_, second)) = (begun(rig, "h1").await, begun(rig, "h2").await);
    assert!(is_committed(&take(&rig.db, &one, &single).await));
    let mut tx = rig.db.begin().await.unwrap();
    delete_host(&mut tx, gone.id).await.unwrap();
    tx.commit().await.unwrap();
    assert!(is_committed(&take(&rig.db, &second, &single).await));
}

/// A silent host of the segment, with its operation.
async fn silent(
    rig: &Rig,
    name: &str,
    segment_id: SegmentId,
    since: i64,
    status: Option<OperationStatus>,
) -> Host {
    let mut host = host(name, &segment("unused"));
    host.segment_id = segment_id;
    host.failure_state = FailureState::Unreachable;
    host.failure_since = Some(at(since));
    host.is_silence_answered = status.is_some();
    let operation = status.map(|status| Operation {
        status,
        finished_at: (!status.is_live()).then(|| at(9)),
        ..fence(&host, 1)
    });
    let operation = operation.map(|operation| held_by(operation, Safeguard::AtOnce));
    insert_host(&mut rig.db.reader(), &host).await.unwrap();
    update_host(&mut rig.db.reader(), &host, None).await.unwrap();
    if let Some(operation) = &operation {
        insert_operation(&rig.db, operation).await.unwrap();
    }
    host
}

/// A fence that is held waits for this safeguard.
fn held_by(mut operation: Operation, safeguard: Safeguard) -> Operation {
    let ruling = Ruling {
        safeguard,
        verdict: Verdict::Hold,
        reason: "others come first".to_owned(),
        release: None,
    };
    let is_held = operation.status == OperationStatus::Held;
    if let Work::Fence(fence) = &mut operation.work {
        fence.held = is_held.then(|| Held {
            since: at(1),
            looked_at: at(1),
            by: vec![ruling],
        });
    }
    operation
}

async fn what_stands_around_a_host_is_counted(rig: &Rig) {
    let ours = segment("ours");
    let elsewhere = segment("elsewhere");
    for segment in [&ours, &elsewhere] {
        insert_segment(&mut rig.db.reader(), segment).await.unwrap();
    }
    let of = async |name: &str, since, status| silent(rig, name, ours.id, since, status).await;
    let it = of("h0", 50, None).await;
    of("h1", 40, None).await;
    of("h2", 45, Some(OperationStatus::Held)).await;
    of("h3", 60, None).await;
    // One that is suspended stands in no line.
    let suspended = of("h10", 30, None).await;
    let waits = Operation {
        status: OperationStatus::Held,
        ..fence(&suspended, 1)
    };
    let waits = held_by(waits, Safeguard::Suspension);
    insert_operation(&rig.db, &waits).await.unwrap();
    of("h4", 61, Some(OperationStatus::Running)).await;
    of("h5", 10, Some(OperationStatus::NeedsOperator)).await;
    of("h6", 10, Some(OperationStatus::Cancelled)).await;
    let ill = |name: &str, generation| Host {
        failure_state: FailureState::Up,
        failure_since: Some(at(0)),
        conditions: sick(20, generation, ConditionAction::Fence),
        ..host(name, &ours)
    };
    // The condition of the last host was answered by its seventh generation.
    let answered = Host {
        generation: Generation(7),
        ..ill("h9", 6)
    };
    for host in [ill("h8", 0), answered] {
        insert_host(&mut rig.db.reader(), &host).await.unwrap();
        update_host(&mut rig.db.reader(), &host, None).await.unwrap();
    }
    silent(rig, "h7", elsewhere.id, 10, Some(OperationStatus::Running)).await;
    let around = neighbourhood(&mut rig.db.reader(), &it, at(0), at(0))
        .await
        .unwrap();
    assert_eq!((around.under_way, around.before_it), (1, 3), "{around:?}");
    assert_eq!((around.hosts, around.out_of_service), (10, 9), "{around:?}");
    let lately = neighbourhood(&mut rig.db.reader(), &it, at(30), at(30))
        .await
        .unwrap()
        .lately;
    assert_eq!(lately, 5, "h0, h1, h2, h3 and h4 are");
}

/// Its power may have been taken.
fn perhaps_off() -> Applied {
    let method = FrozenMethod {
        id: MethodId(Uuid::from_u128(9)),
        name: "bmc".to_owned(),
        resource: Resource::Power,
        driver: "ipmi".to_owned(),
        service_of: None,
        can_prove: true,
        parameters: BTreeMap::new(),
        secrets: BTreeMap::new(),
        zone: "default".to_owned(),
        device: None,
        times: MethodTimes::default(),
    };
    let taken = AppliedFencing {
        kind: FencingKind::PowerOff,
        method,
        attempt: attempt(1),
        by: at(7),
        is_shown: false,
    };
    Applied {
        fencing: vec![taken],
        marked_down_by: None,
    }
}

async fn what_may_be_lost_beside_a_host_is_listed(rig: &Rig) {
    let (it, _) = begun(rig, "h0").await;
    begun(rig, "h1").await;
    let (_, held) = begun(rig, "h2").await;
    let (cancelled_host, cancelled) = begun(rig, "h3").await;
    let (waits_host, waits) = begun(rig, "h4").await;
    let (_, untouched) = begun(rig, "h5").await;
    for (operation, status) in [
        (held, OperationStatus::Held),
        (waits, OperationStatus::NeedsOperator),
        (untouched, OperationStatus::NeedsOperator),
    ] {
        let operation = Operation { status, ..operation };
        update_operation(&rig.db, &operation).await.unwrap();
    }
    update_operation(&rig.db, &done(&cancelled)).await.unwrap();
    let mut reader = rig.db.reader();
    for host in [cancelled_host, waits_host] {
        let taken = Host {
            applied: perhaps_off(),
            ..host
        };
        update_host(&mut reader, &taken, None).await.unwrap();
    }
    let gone = hosts_gone_beside(&mut reader, it.id, 10).await.unwrap();
    let names: Vec<&str> = gone.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["h1", "h3", "h4"]);
    let first = hosts_gone_beside(&mut reader, it.id, 1).await.unwrap();
    assert_eq!(first.len(), 1);
}

async fn the_hosts_of_a_group_are_counted_in_whichever_segment_they_are(rig: &Rig) {
    let ours = segment("ours");
    let elsewhere = segment("elsewhere");
    for segment in [&ours, &elsewhere] {
        insert_segment(&mut rig.db.reader(), segment).await.unwrap();
    }
    let in_rack = async |name: &str, rack: &str, state, since, of: &Segment| {
        let host = Host {
            labels: [("rack".to_owned(), rack.to_owned())].into(),
            failure_state: state,
            failure_since: Some(at(since)),
            ..host(name, of)
        };
        insert_host(&mut rig.db.reader(), &host).await.unwrap();
        update_host(&mut rig.db.reader(), &host, None).await.unwrap();
        host
    };
    let it = in_rack("h0", "r1", FailureState::Unreachable, 50, &ours).await;
    in_rack("h1", "r1", FailureState::Up, 50, &ours).await;
    // Its segment may fence nothing by itself: it is not waited for.
    in_rack("h2", "r1", FailureState::Unreachable, 10, &elsewhere).await;
    in_rack("h3", "r2", FailureState::Unreachable, 40, &ours).await;
    let running = in_rack("h4", "r1", FailureState::Up, 50, &ours).await;
    let taken = in_rack("h5", "r1", FailureState::Up, 50, &ours).await;
    let taken = Host {
        applied: perhaps_off(),
        ..taken
    };
    update_host(&mut rig.db.reader(), &taken, None).await.unwrap();
    silent(rig, "h6", ours.id, 10, None).await;
    let rule = |label: Option<&str>| GroupRule {
        label: label.map(str::to_owned),
        at_once: Some(1),
        ..GroupRule::default()
    };
    let policy = FencingPolicy {
        groups: vec![rule(Some("rack")), rule(None), rule(Some("row"))],
        ..FencingPolicy::default()
    };
    // What has begun in this span of time is counted, too.
    let begun = policy
        .groups(&it.labels)
        .next()
        .unwrap()
        .begun_as(at(60))
        .next()
        .unwrap();
    let permit = Permit {
        of: begun.clone(),
        at_most: 1,
        is_kept: true,
    };
    let under_way = fence(&running, 1);
    insert_operation(&rig.db, &under_way).await.unwrap();
    assert!(is_committed(&take(&rig.db, &under_way, &permit).await));
    let counts = group_counts(&mut rig.db.reader(), &it, &policy, at(60))
        .await
        .unwrap();
    let count = |hosts, out, under_way, before_it| GroupCount {
        hosts,
        out,
        under_way,
        before_it,
    };
    let expected = GroupCounts {
        counted_at: Some(at(60)),
        by_name: [
            ("rack=r1".to_owned(), count(5, 3, 1, 0)),
            ("all hosts".to_owned(), count(7, 5, 1, 2)),
        ]
        .into(),
        begun: counts.begun.clone(),
    };
    assert_eq!(counts.begun[&begun], 1, "{counts:?}");
    assert_eq!(counts, expected);
    let values = label_values(&mut rig.db.reader()).await.unwrap();
    let rack = [("r1".to_owned(), 5), ("r2".to_owned(), 1)].into();
    assert_eq!(values, [("rack".to_owned(), rack)].into());
}
