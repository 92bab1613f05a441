//! Problems of hosts are counted from the events that tell them.

use std::collections::BTreeMap;

use ringfence_core::{
    AlarmRule, Alarms, EventKind, Flapping, Host, HostId, HostProblem, Segment, StandingAlarm,
};
use ringfence_db::{
    Asked, Filters, Kept, NewEvent, Page, ProblemCounts, ProblemTest, SortKey, Test, append_events,
    delete_host, events_kept_since, hosts_page, insert_segment, number_events, old_rows, problems_of_all,
    problems_of_host, remove_rows, survey, troubled_hosts,
};
use serde_json::{Value, json};

use crate::rig::Rig;
use crate::site::{add_hosts, at, event, hosts_by, segment, update_host};

crate::stories!(problems:
    problems_of_a_host_are_counted_from_its_events,
    hosts_are_listed_by_their_problems_in_pages,
    problems_are_counted_where_they_came,
    counts_say_from_when_on_they_are_whole,
    hosts_in_quarantine_and_with_alarms_are_listed_and_counted,
);

/// Two racks: `a`, `b` and `c` in the first, `d` in the second.
async fn site(rig: &Rig) -> ([Segment; 2], Vec<Host>) {
    let mut tx = rig.db.begin().await.unwrap();
    let racks = ["rack-1", "rack-2"].map(segment);
    let mut hosts = Vec::new();
    for (rack, names) in racks.iter().zip([&["a", "b", "c"][..], &["d"]]) {
        insert_segment(&mut tx, rack).await.unwrap();
        hosts.extend(add_hosts(&mut tx, rack, names).await);
    }
    tx.commit().await.unwrap();
    (racks, hosts)
}

/// What happens to a host, one event after the other.
async fn happens(rig: &Rig, host: &Host, told: &[(i64, EventKind, Value)]) {
    let numbered = told.iter().zip(1..);
    let events: Vec<NewEvent> = numbered
        .map(|((seconds, kind, data), number)| NewEvent {
            kind: *kind,
            occurred_at: at(*seconds),
            data: data.clone(),
            ..event(host, number)
        })
        .collect();
    append_events(&mut rig.db.reader(), &events).await.unwrap();
    while number_events(&rig.db).await.unwrap() > 0 {}
}

fn failed(seconds: i64) -> (i64, EventKind, Value) {
    let data = json!({ "from": "UP", "to": "UNREACHABLE" });
    (seconds, EventKind::HostFailureState, data)
}

fn came_back(seconds: i64) -> (i64, EventKind, Value) {
    let data = json!({ "from": "UNREACHABLE", "to": "UP" });
    (seconds, EventKind::HostFailureState, data)
}

fn fenced(seconds: i64) -> (i64, EventKind, Value) {
    (seconds, EventKind::HostFenced, json!({}))
}

fn returned(seconds: i64) -> (i64, EventKind, Value) {
    (seconds, EventKind::HostUnfenced, json!({}))
}

fn condition(seconds: i64, name: &str, action: Option<&str>) -> (i64, EventKind, Value) {
    let data = json!({ "condition": name, "action": action });
    (seconds, EventKind::HostCondition, data)
}

fn counts(by_problem: [u64; 4], by_condition: &[(&str, u64)]) -> ProblemCounts {
    let problems = HostProblem::ALL.iter().copied().zip(by_problem);
    let names = by_condition
        .iter()
        .map(|(name, times)| ((*name).to_owned(), *times));
    ProblemCounts {
        by_problem: problems.filter(|(_, times)| *times > 0).collect(),
        by_condition: names.collect::<BTreeMap<_, _>>(),
    }
}

async fn problems_of_a_host_are_counted_from_its_events(rig: &Rig) {
    let (_, hosts) = site(rig).await;
    let told = [
        failed(10),
        fenced(11),
        came_back(12),
        returned(13),
        condition(14, "KernelDeadlock", Some("report")),
        condition(15, "KernelDeadlock", None),
        condition(16, "KernelDeadlock", Some("fence")),
        condition(17, "ReadonlyFilesystem", Some("spare")),
        (18, EventKind::HostQuarantined, json!({ "problem": "failed" })),
        failed(20),
    ];
    happens(rig, &hosts[0], &told).await;
    happens(rig, &hosts[1], &[failed(10)]).await;
    let since = async |seconds| {
        let mut reader = rig.db.reader();
        problems_of_host(&mut reader, hosts[0].id, at(seconds))
            .await
            .unwrap()
    };
    let all = counts([2, 1, 1, 3], &[("KernelDeadlock", 2), ("ReadonlyFilesystem", 1)]);
    assert_eq!(since(9).await, all);
    let later = counts([1, 1, 1, 3], &[("KernelDeadlock", 2), ("ReadonlyFilesystem", 1)]);
    assert_eq!(since(10).await, later, "a window begins after its first moment");
    assert_eq!(since(19).await, counts([1, 0, 0, 0], &[]));
    assert_eq!(since(20).await, ProblemCounts::default());
}

async fn hosts_are_listed_by_their_problems_in_pages(rig: &Rig) {
    let (_, hosts) = site(rig).await;
    happens(rig, &hosts[0], &[failed(10), returned(11), returned(12)]).await;
    happens(rig, &hosts[1], &[failed(10), fenced(11), fenced(12)]).await;
    happens(rig, &hosts[2], &[returned(10)]).await;
    happens(rig, &hosts[3], &[fenced(10)]).await;
    let test = ProblemTest {
        since: at(0),
        segment_id: None,
    };
    let listed = async |problem, limit: u32| {
        let (mut all, mut after): (Vec<(String, u64)>, Option<HostId>) = (Vec::new(), None);
        loop {
            let mut reader = rig.db.reader();
            let page = troubled_hosts(&mut reader, test, problem, after, limit)
                .await
                .unwrap();
            assert!(page.len() <= limit as usize);
            let Some(last) = page.last() else { return all };
            after = Some(last.id);
            all.extend(page.into_iter().map(|host| (host.name, host.problems)));
            assert!(all.len() < 10, "the pages do not end");
        }
    };
    let named = |hosts: &[(&str, u64)]| -> Vec<(String, u64)> {
        hosts
            .iter()
            .map(|(name, problems)| ((*name).to_owned(), *problems))
            .collect()
    };
    for limit in [1, 2, 3, 50] {
        assert_eq!(listed(None, limit).await, named(&[("b", 3), ("a", 1), ("d", 1)]));
        let fenced = Some(HostProblem::Fenced);
        assert_eq!(listed(fenced, limit).await, named(&[("b", 2), ("d", 1)]));
        let returned = Some(HostProblem::Returned);
        assert_eq!(listed(returned, limit).await, named(&[("a", 2), ("c", 1)]));
    }
    let mut reader = rig.db.reader();
    let page = troubled_hosts(&mut reader, test, None, None, 50).await.unwrap();
    assert_eq!(
        page[1].counts,
        counts([1, 0, 2, 0], &[]),
        "all that is counted goes with it"
    );
    assert_eq!(page[2].segment, "rack-2");
}

async fn problems_are_counted_where_they_came(rig: &Rig) {
    let (racks, hosts) = site(rig).await;
    happens(rig, &hosts[0], &[failed(10), fenced(11)]).await;
    happens(rig, &hosts[3], &[failed(10)]).await;
    let moved = Host {
        segment_id: racks[1].id,
        ..hosts[0].clone()
    };
    update_host(&mut rig.db.reader(), &moved, None).await.unwrap();
    let of = async |rack: &Segment| {
        let test = ProblemTest {
            since: at(0),
            segment_id: Some(rack.id),
        };
        let mut reader = rig.db.reader();
        let total = problems_of_all(&mut reader, test).await.unwrap();
        let hosts = troubled_hosts(&mut reader, test, None, None, 50).await.unwrap();
        let hosts: Vec<_> = hosts.into_iter().map(|host| (host.name, host.segment)).collect();
        (total, hosts)
    };
    let named = |host: &str, rack: &str| vec![(host.to_owned(), rack.to_owned())];
    let rack_1 = (counts([1, 1, 0, 0], &[]), named("a", "rack-2"));
    assert_eq!(of(&racks[0]).await, rack_1);
    assert_eq!(
        of(&racks[1]).await,
        (counts([1, 0, 0, 0], &[]), named("d", "rack-2"))
    );
    // What happened to a host that was removed is counted for its segment, and the host is not listed.
    delete_host(&mut rig.db.reader(), hosts[3].id).await.unwrap();
    assert_eq!(of(&racks[1]).await, (counts([1, 0, 0, 0], &[]), Vec::new()));
}

async fn counts_say_from_when_on_they_are_whole(rig: &Rig) {
    let (_, hosts) = site(rig).await;
    happens(rig, &hosts[0], &[failed(10), fenced(20), failed(30), fenced(40)]).await;
    let kept_since = async || events_kept_since(&mut rig.db.reader()).await.unwrap();
    assert_eq!(kept_since().await, None);
    let old = old_rows(&rig.db, Kept::Events, at(25), 100).await.unwrap();
    assert_eq!(remove_rows(&rig.db, Kept::Events, at(25), &old).await.unwrap(), 2);
    assert_eq!(kept_since().await, Some(at(30)));
}

async fn hosts_in_quarantine_and_with_alarms_are_listed_and_counted(rig: &Rig) {
    let (racks, hosts) = site(rig).await;
    let in_quarantine = Host {
        flapping: Flapping {
            fenced_at: vec![at(1)],
            quarantined_at: Some(at(2)),
        },
        ..hosts[1].clone()
    };
    let rule = AlarmRule {
        problem: HostProblem::Fenced,
        condition: None,
        times: 1,
        within_s: 60,
    };
    let alarmed = Host {
        alarms: Alarms {
            counted: Vec::new(),
            standing: vec![StandingAlarm { rule, since: at(3) }],
        },
        ..hosts[3].clone()
    };
    for host in [&in_quarantine, &alarmed] {
        update_host(&mut rig.db.reader(), host, None).await.unwrap();
    }
    let page = Page {
        limit: 50,
        marker: None,
        sort: vec![SortKey::Name.ascending()],
    };
    let listed = async |filters: Filters| -> Vec<String> {
        let rows = hosts_page(&mut rig.db.reader(), &filters, &page).await.unwrap();
        rows.into_iter().map(|row| row.host.name).collect()
    };
    let is = |word: &str| Test::is(Asked::from(word));
    assert_eq!(listed(hosts_by("quarantined", is("true"))).await, ["b"]);
    assert_eq!(
        listed(hosts_by("quarantined", is("false"))).await,
        ["a", "c", "d"]
    );
    assert_eq!(listed(hosts_by("alarmed", is("true"))).await, ["d"]);
    let none_of = |words: &[&str]| Test::NoneOf(words.iter().map(|word| Asked::from(*word)).collect());
    assert_eq!(
        listed(hosts_by("alarmed", none_of(&["true"]))).await,
        ["a", "b", "c"]
    );
    assert_eq!(
        listed(hosts_by("alarmed", none_of(&["true", "false"]))).await,
        [""; 0]
    );
    let either = Test::OneOf(["true", "false"].map(Asked::from).to_vec());
    assert_eq!(listed(hosts_by("alarmed", either)).await.len(), 4);
    let survey = survey(&mut rig.db.reader(), at(0)).await.unwrap();
    let numbers: Vec<_> = survey
        .segments
        .into_iter()
        .filter_map(|segment| Some((segment.named?.0, segment.quarantined, segment.alarmed)))
        .filter(|(id, _, _)| racks.iter().any(|rack| rack.id == *id))
        .collect();
    assert_eq!(numbers, [(racks[0].id, 1, 0), (racks[1].id, 0, 1)]);
}
