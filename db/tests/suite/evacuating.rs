//! The evacuations of all hosts, as their moves have to know of each other.

use std::collections::BTreeMap;

use ringfence_core::{
    Backend, Evacuating, EvacuationWork, Host, MoveStep, Operation, PlatformHost, Stage, Task, TaskStatus,
    Work, Workload, WorkloadState, WorkloadStep,
};
use ringfence_db::{evacuations, insert_segment, survey};

use crate::rig::Rig;
use crate::site::{add_hosts, at, done, fence, insert_operations, segment, update_operation};

crate::stories!(evacuating:
    evacuations_are_read_while_they_are_under_way_and_for_some_time_after,
);

/// With a move that has yet to begin.
fn evacuation(host: &Host) -> Operation {
    let workload = Workload {
        id: "1".to_owned(),
        name: "web".to_owned(),
        owner: None,
        state: WorkloadState::Running,
        metadata: BTreeMap::from([("evacuation_priority".to_owned(), "7".to_owned())]),
    };
    let step = MoveStep {
        workload,
        cut_off_by: Vec::new(),
        given_up: None,
        only_look: false,
        disruption_budgets: false,
    };
    let stage = Stage {
        delay_s: 0,
        at_once: Some(4),
        awaits: None,
        entered_at: Some(at(1)),
        started_at: Some(at(1)),
        tasks: vec![Task::step(WorkloadStep::Move(Box::new(step)))],
    };
    let platform = PlatformHost {
        backend: Backend::Nova,
        platform: "paris".to_owned(),
        host: host.name.clone(),
        zone: "default".to_owned(),
    };
    Operation {
        work: Work::Evacuation(EvacuationWork::default()),
        platform: Some(Box::new(platform)),
        stages: vec![stage],
        ..fence(host, 1)
    }
}

async fn evacuations_are_read_while_they_are_under_way_and_for_some_time_after(rig: &Rig) {
    let rack = segment("rack");
    let mut tx = rig.db.begin().await.unwrap();
    insert_segment(&mut tx, &rack).await.unwrap();
    let hosts = add_hosts(&mut tx, &rack, &["a", "b", "c"]).await;
    tx.commit().await.unwrap();
    let live = evacuation(&hosts[0]);
    let over = done(&evacuation(&hosts[1]));
    insert_operations(&rig.db, &[live.clone(), over, fence(&hosts[2], 1)])
        .await
        .unwrap();
    let read = async |since| -> Vec<Evacuating> {
        let mut all = evacuations(&mut rig.db.reader(), at(since)).await.unwrap();
        all.sort_by_key(|one| one.host_id != hosts[0].id);
        all
    };
    let counted = async || {
        let survey = survey(&mut rig.db.reader(), at(9)).await.unwrap();
        let rack = &survey.segments[0];
        (rack.moves_waiting, rack.moves_under_way)
    };

    let all = read(8).await;
    let of: Vec<_> = all.iter().map(|one| one.host_id).collect();
    assert_eq!(of, [hosts[0].id, hosts[1].id]);
    assert_eq!((all[0].segment_id, all[0].since), (rack.id, at(1)));
    assert_eq!(all[0].queue.platform, "nova:paris");
    assert_eq!(all[0].queue.waiting, [(7, 1)]);
    assert_eq!((all[0].queue.room, all[0].queue.under_way), (4, 0));
    assert!(all[1].queue.waiting.is_empty(), "it is over");
    assert_eq!(read(9).await.len(), 1, "what ended earlier counts no more");
    assert_eq!(counted().await, (1, 0));

    let mut begun = live;
    begun
        .tasks_mut()
        .for_each(|task| task.status = TaskStatus::Running);
    update_operation(&rig.db, &begun).await.unwrap();
    let all = read(9).await;
    assert_eq!(all[0].queue.waiting, []);
    assert_eq!((all[0].queue.room, all[0].queue.under_way), (3, 1));
    assert_eq!(counted().await, (0, 1));
}
