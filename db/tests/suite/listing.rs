//! Listings of hosts and operations, page by page.

use ringfence_core::{
    Backend, FailureState, FencingState, Host, OperationKind, OperationStatus, RejoinWork, Work,
};
use ringfence_db::{
    HostFilter, OperationFilter, Order, Page, SortKey, Test, count_hosts, delete_host, due_hosts,
    hosts_ahead, hosts_of_cloud, hosts_page, insert_host, insert_segment, operations_page, stranded_hosts,
};
use serde_json::json;
use uuid::Uuid;

use crate::rig::Rig;
use crate::site::{
    add_hosts, at, done, fence, fence_by_power, host, insert_operation, one_host, segment, update_host,
};

crate::stories!(listing:
    every_order_shows_every_host_once_page_by_page,
    a_page_after_a_host_that_was_changed_goes_on_from_where_it_is_now,
    a_page_after_a_host_that_is_gone_is_empty,
    several_keys_in_either_direction_show_every_host_once,
    each_filter_chooses,
    tests_on_one_column_all_hold,
    filters_and_pages_go_together,
    operations_are_listed_by_time_and_filtered,
    hosts_are_due_when_their_time_has_come,
    hosts_that_were_written_at_a_time_to_come_are_found,
    an_observer_reads_its_own_record_of_the_hosts_of_its_cloud,
    an_operation_that_nothing_would_wake_is_found,
);

fn page(sort: SortKey, descending: bool, limit: u32) -> Page {
    Page {
        limit,
        marker: None,
        sort: vec![Order {
            key: sort,
            descending,
        }],
    }
}

async fn walk(rig: &Rig, filter: &HostFilter, mut page: Page) -> Vec<Host> {
    let mut all = Vec::new();
    loop {
        let rows = hosts_page(&mut rig.db.reader(), filter, &page).await.unwrap();
        assert!(rows.len() <= page.limit as usize);
        let Some(last) = rows.last() else { return all };
        page.marker = Some(last.host.id.0);
        all.extend(rows.into_iter().map(|row| row.host));
        assert!(all.len() < 1000, "the listing does not end");
    }
}

async fn every_order_shows_every_host_once_page_by_page(rig: &Rig) {
    let rack = segment("rack-1");
    insert_segment(&mut rig.db.reader(), &rack).await.unwrap();
    let mut hosts = Vec::new();
    for n in 0..11 {
        // Three or four hosts share each moment, so that ties straddle pages.
        let one = Host {
            created_at: at(n % 3),
            updated_at: at(10 - n % 4),
            ..host(&format!("node-{:02}", (n * 7) % 11), &rack)
        };
        insert_host(&mut rig.db.reader(), &one).await.unwrap();
        hosts.push(one);
    }
    for descending in [false, true] {
        for limit in [1, 2, 4, 11, 50] {
            for sort in [SortKey::Name, SortKey::CreatedAt, SortKey::UpdatedAt] {
                let seen = walk(rig, &HostFilter::default(), page(sort, descending, limit)).await;
                let mut expected = hosts.clone();
                match sort {
                    SortKey::Name => expected.sort_by_key(|h| h.name.clone()),
                    SortKey::CreatedAt => expected.sort_by_key(|h| (h.created_at, h.id)),
                    SortKey::UpdatedAt => expected.sort_by_key(|h| (h.updated_at, h.id)),
                }
                if descending {
                    expected.reverse();
                }
                assert_eq!(
                    seen, expected,
                    "{sort:?}, descending {descending}, {limit} a page"
                );
            }
        }
    }
}

async fn a_page_after_a_host_that_was_changed_goes_on_from_where_it_is_now(rig: &Rig) {
    let rack = segment("rack-1");
    insert_segment(&mut rig.db.reader(), &rack).await.unwrap();
    let hosts = add_hosts(&mut rig.db.reader(), &rack, &["a", "b", "c", "d"]).await;
    let renamed = Host {
        name: "cc".to_owned(),
        ..hosts[1].clone()
    };
    update_host(&mut rig.db.reader(), &renamed, None).await.unwrap();
    let after = Page {
        marker: Some(renamed.id.0),
        ..page(SortKey::Name, false, 10)
    };
    let rows = hosts_page(&mut rig.db.reader(), &HostFilter::default(), &after)
        .await
        .unwrap();
    assert_eq!(
        rows.iter().map(|row| row.host.name.as_str()).collect::<Vec<_>>(),
        ["d"]
    );
}

/// Who pages has to see that the marker is gone; a listing that began again from the top would never end.
async fn a_page_after_a_host_that_is_gone_is_empty(rig: &Rig) {
    let rack = segment("rack-1");
    insert_segment(&mut rig.db.reader(), &rack).await.unwrap();
    let hosts = add_hosts(&mut rig.db.reader(), &rack, &["a", "b", "c"]).await;
    delete_host(&mut rig.db.reader(), hosts[0].id).await.unwrap();
    for marker in [hosts[0].id.0, Uuid::new_v4()] {
        for descending in [false, true] {
            let after = Page {
                marker: Some(marker),
                ..page(SortKey::Name, descending, 10)
            };
            let rows = hosts_page(&mut rig.db.reader(), &HostFilter::default(), &after)
                .await
                .unwrap();
            assert!(rows.is_empty());
        }
    }
}

async fn several_keys_in_either_direction_show_every_host_once(rig: &Rig) {
    let rack = segment("rack-1");
    insert_segment(&mut rig.db.reader(), &rack).await.unwrap();
    let mut hosts = Vec::new();
    for n in 0..12 {
        let one = Host {
            created_at: at(n % 2),
            updated_at: at(n % 3),
            ..host(&format!("node-{n:02}"), &rack)
        };
        insert_host(&mut rig.db.reader(), &one).await.unwrap();
        hosts.push(one);
    }
    let keys = [SortKey::CreatedAt, SortKey::UpdatedAt];
    for directions in [[false, false], [false, true], [true, false], [true, true]] {
        for with_name in [None, Some(false), Some(true)] {
            let mut sort: Vec<Order> = Vec::new();
            for (key, descending) in keys.into_iter().zip(directions) {
                sort.push(Order { key, descending });
            }
            sort.extend(with_name.map(|descending| Order {
                key: SortKey::Name,
                descending,
            }));
            let mut expected = hosts.clone();
            expected.sort_by(|a, b| {
                let turned = |order: std::cmp::Ordering, turn| if turn { order.reverse() } else { order };
                let last = match with_name {
                    Some(turn) => turned(a.name.cmp(&b.name), turn),
                    None => turned(a.id.cmp(&b.id), directions[1]),
                };
                turned(a.created_at.cmp(&b.created_at), directions[0])
                    .then(turned(a.updated_at.cmp(&b.updated_at), directions[1]))
                    .then(last)
            });
            for limit in [1, 5] {
                let page = Page {
                    limit,
                    marker: None,
                    sort: sort.clone(),
                };
                let seen = walk(rig, &HostFilter::default(), page).await;
                assert_eq!(seen, expected, "{sort:?}, {limit} a page");
            }
        }
    }
}

async fn tests_on_one_column_all_hold(rig: &Rig) {
    let rack = segment("rack-1");
    insert_segment(&mut rig.db.reader(), &rack).await.unwrap();
    for n in 0..6 {
        let one = Host {
            created_at: at(n),
            host_type: (n % 2 == 0).then(|| "even".to_owned()),
            ..host(&format!("node-{n}"), &rack)
        };
        insert_host(&mut rig.db.reader(), &one).await.unwrap();
    }
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let cases: Vec<(HostFilter, &[&str])> = vec![
        (
            HostFilter {
                created_at: vec![
                    Test::AtLeast(at(1)),
                    Test::Below(at(4)),
                    Test::NoneOf(vec![at(2)]),
                ],
                ..HostFilter::default()
            },
            &["node-1", "node-3"],
        ),
        (
            HostFilter {
                created_at: vec![Test::Above(at(1)), Test::AtMost(at(3))],
                ..HostFilter::default()
            },
            &["node-2", "node-3"],
        ),
        (
            HostFilter {
                host_type: vec![Test::NoneOf(names(&["even"]))],
                ..HostFilter::default()
            },
            &["node-1", "node-3", "node-5"],
        ),
        (
            HostFilter {
                name: vec![Test::OneOf(names(&["node-0", "node-1", "it's"]))],
                host_type: vec![Test::is("even".to_owned())],
                ..HostFilter::default()
            },
            &["node-0"],
        ),
        (
            HostFilter {
                failure_state: vec![Test::NoneOf(vec![FailureState::Unknown])],
                ..HostFilter::default()
            },
            &[],
        ),
    ];
    for (filter, expected) in cases {
        let seen = walk(rig, &filter, page(SortKey::Name, false, 2)).await;
        let seen: Vec<_> = seen.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(seen, expected, "{filter:?}");
    }
}

async fn each_filter_chooses(rig: &Rig) {
    let (one, other) = (segment("rack-1"), segment("rack-2"));
    for rack in [&one, &other] {
        insert_segment(&mut rig.db.reader(), rack).await.unwrap();
    }
    let variants = [
        host("plain", &one),
        Host {
            failure_state: FailureState::Unreachable,
            ..host("dead", &one)
        },
        Host {
            failure_state: FailureState::Up,
            backend: Backend::Nova,
            ..host("hypervisor", &other)
        },
        Host {
            backend: Backend::Kubernetes,
            ..host("node", &other)
        },
        host("fenced", &one),
    ];
    for variant in &variants {
        insert_host(&mut rig.db.reader(), variant).await.unwrap();
    }
    fence_by_power(&rig.db, &variants[4], 1).await;

    let none = HostFilter::default();
    let by_segment = |text: String| HostFilter {
        segment: vec![Test::is(text)],
        ..none.clone()
    };
    let cases: Vec<(HostFilter, &[&str])> = vec![
        (none.clone(), &["dead", "fenced", "hypervisor", "node", "plain"]),
        (
            HostFilter {
                fencing_state: vec![Test::is(FencingState::Fenced)],
                ..none.clone()
            },
            &["fenced"],
        ),
        (
            HostFilter {
                fencing_state: vec![Test::is(FencingState::Unfenced)],
                ..none.clone()
            },
            &["dead", "hypervisor", "node", "plain"],
        ),
        (
            HostFilter {
                failure_state: vec![Test::is(FailureState::Unreachable)],
                ..none.clone()
            },
            &["dead"],
        ),
        (
            HostFilter {
                failure_state: vec![Test::is(FailureState::Up)],
                ..none.clone()
            },
            &["hypervisor"],
        ),
        (
            HostFilter {
                backend: vec![Test::is(Backend::Kubernetes)],
                ..none.clone()
            },
            &["node"],
        ),
        (by_segment("rack-2".to_owned()), &["hypervisor", "node"]),
        (by_segment(other.id.to_string()), &["hypervisor", "node"]),
        (
            by_segment(other.id.to_string().to_uppercase()),
            &["hypervisor", "node"],
        ),
        (by_segment("rack".to_owned()), &[]),
        (
            HostFilter {
                name: vec![Test::is("dead".to_owned())],
                ..none.clone()
            },
            &["dead"],
        ),
        (
            HostFilter {
                name: vec![Test::is("dea".to_owned())],
                ..none.clone()
            },
            &[],
        ),
        (
            HostFilter {
                backend: vec![Test::is(Backend::Nova)],
                failure_state: vec![Test::is(FailureState::Unknown)],
                ..none.clone()
            },
            &[],
        ),
    ];
    for (filter, expected) in cases {
        let rows = hosts_page(&mut rig.db.reader(), &filter, &page(SortKey::Name, false, 50))
            .await
            .unwrap();
        let names: Vec<_> = rows.iter().map(|row| row.host.name.as_str()).collect();
        assert_eq!(names, expected, "{filter:?}");
        let count = count_hosts(&mut rig.db.reader(), &filter).await.unwrap();
        assert_eq!(count, expected.len() as u64, "{filter:?}");
    }
}

async fn filters_and_pages_go_together(rig: &Rig) {
    let rack = segment("rack-1");
    insert_segment(&mut rig.db.reader(), &rack).await.unwrap();
    for n in 0..9 {
        let backend = if n % 2 == 0 { Backend::Nova } else { Backend::None };
        insert_host(
            &mut rig.db.reader(),
            &Host {
                backend,
                ..host(&format!("node-{n}"), &rack)
            },
        )
        .await
        .unwrap();
    }
    let filter = HostFilter {
        backend: vec![Test::is(Backend::Nova)],
        ..HostFilter::default()
    };
    let seen = walk(rig, &filter, page(SortKey::CreatedAt, true, 2)).await;
    assert_eq!(seen.len(), 5);
    assert!(seen.iter().all(|host| host.backend == Backend::Nova));
    assert!(seen.is_sorted_by_key(|host| std::cmp::Reverse((host.created_at, host.id))));
}

async fn operations_are_listed_by_time_and_filtered(rig: &Rig) {
    let (rack, one) = one_host(&rig.db).await;
    let other = host("node-2", &rack);
    insert_host(&mut rig.db.reader(), &other).await.unwrap();
    let mut operations = Vec::new();
    for generation in 1..=5 {
        let mut operation = done(&fence(&one, generation));
        operation.created_at = at(i64::from(generation / 2));
        if generation % 2 == 0 {
            operation.work = Work::Rejoin(RejoinWork {
                boot_confirmed: false,
            });
        }
        operations.push(operation);
    }
    operations.push(fence(&other, 1));
    for operation in &operations {
        insert_operation(&rig.db, operation).await.unwrap();
    }
    let none = OperationFilter::default();
    for descending in [false, true] {
        let mut page = page(SortKey::Name, descending, 2);
        let mut seen = Vec::new();
        loop {
            let rows = operations_page(&mut rig.db.reader(), &none, &page).await.unwrap();
            let Some(last) = rows.last() else { break };
            page.marker = Some(last.id.0);
            seen.extend(rows);
        }
        let mut expected = operations.clone();
        expected.sort_by_key(|operation| (operation.created_at, operation.id));
        if descending {
            expected.reverse();
        }
        assert_eq!(seen, expected);
    }
    let all = page(SortKey::UpdatedAt, false, 100);
    for (filter, expected) in [
        (
            OperationFilter {
                host_id: vec![Test::is(one.id.0)],
                ..none.clone()
            },
            5,
        ),
        (
            OperationFilter {
                kind: vec![Test::is(OperationKind::Rejoin)],
                ..none.clone()
            },
            2,
        ),
        (
            OperationFilter {
                status: vec![Test::is(OperationStatus::Running)],
                ..none.clone()
            },
            1,
        ),
        (
            OperationFilter {
                status: vec![Test::is(OperationStatus::Running)],
                host_id: vec![Test::is(one.id.0)],
                ..none.clone()
            },
            0,
        ),
    ] {
        let rows = operations_page(&mut rig.db.reader(), &filter, &all)
            .await
            .unwrap();
        assert_eq!(rows.len(), expected, "{filter:?}");
    }
}

async fn hosts_are_due_when_their_time_has_come(rig: &Rig) {
    let rack = segment("rack-1");
    insert_segment(&mut rig.db.reader(), &rack).await.unwrap();
    let hosts = add_hosts(&mut rig.db.reader(), &rack, &["never", "late", "now", "soon"]).await;
    for (host, wake_at) in hosts.iter().zip([None, Some(at(5)), Some(at(10)), Some(at(11))]) {
        update_host(&mut rig.db.reader(), host, wake_at).await.unwrap();
    }
    let mut reader = rig.db.reader();
    assert_eq!(due_hosts(&mut reader, at(4), 10).await.unwrap(), []);
    assert_eq!(
        due_hosts(&mut reader, at(10), 10).await.unwrap(),
        [hosts[1].id, hosts[2].id]
    );
    assert_eq!(
        due_hosts(&mut reader, at(10), 1).await.unwrap(),
        [hosts[1].id],
        "the most overdue first"
    );
    update_host(&mut rig.db.reader(), &hosts[1], None).await.unwrap();
    assert_eq!(due_hosts(&mut reader, at(10), 10).await.unwrap(), [hosts[2].id]);
}

async fn hosts_that_were_written_at_a_time_to_come_are_found(rig: &Rig) {
    let rack = segment("rack-1");
    insert_segment(&mut rig.db.reader(), &rack).await.unwrap();
    let hosts = add_hosts(&mut rig.db.reader(), &rack, &["first", "second", "third"]).await;
    let mut reader = rig.db.reader();
    let all = [hosts[1].id, hosts[2].id];
    assert_eq!(hosts_ahead(&mut reader, at(0), 10).await.unwrap(), all);
    assert_eq!(hosts_ahead(&mut reader, at(0), 1).await.unwrap(), all[..1]);
    assert_eq!(hosts_ahead(&mut reader, at(2), 10).await.unwrap(), []);
}

async fn an_observer_reads_its_own_record_of_the_hosts_of_its_cloud(rig: &Rig) {
    let source = "nova:\"east\" \\ Süd";
    let own = json!({ "state": "UP", "observed_at": at(3), "reported_at": at(4), "late_ms": 0, "alive_at": at(3), "boots": [] });
    let other = json!({ "state": "UNREACHABLE", "observed_at": at(5), "reported_at": at(5), "late_ms": 0, "boots": [] });
    let mut watched = segment("watched");
    watched.policy.self_fencing_timeout_s = Some(60);
    let plain = segment("plain");
    for segment in [&watched, &plain] {
        insert_segment(&mut rig.db.reader(), segment).await.unwrap();
    }
    let of_cloud = |name, segment, sources| Host {
        backend: Backend::Nova,
        cloud: Some("east".to_owned()),
        sources: serde_json::from_value(json!({ "by_name": sources, "struck_off": {} })).unwrap(),
        ..host(name, segment)
    };
    let hosts = [
        of_cloud("heard", &watched, json!({ source: own, "agent": other })),
        of_cloud("never", &plain, json!({ "agent": other })),
        of_cloud("fenced", &watched, json!({})),
    ];
    let mut reader = rig.db.reader();
    for host in &hosts {
        insert_host(&mut reader, host).await.unwrap();
    }
    insert_host(&mut reader, &host("elsewhere", &watched))
        .await
        .unwrap();
    fence_by_power(&rig.db, &hosts[2], 1).await;
    let mut read = hosts_of_cloud(&mut reader, "east", source).await.unwrap();
    read.sort_by(|a, b| a.name.cmp(&b.name));
    let read: Vec<_> = read
        .iter()
        .map(|host| (host.name.as_str(), host.own.is_some(), host.is_silence_counted))
        .collect();
    assert_eq!(
        read,
        [
            ("fenced", false, false),
            ("heard", true, true),
            ("never", false, false)
        ]
    );
}

async fn an_operation_that_nothing_would_wake_is_found(rig: &Rig) {
    let rack = segment("rack-1");
    insert_segment(&mut rig.db.reader(), &rack).await.unwrap();
    let hosts = add_hosts(
        &mut rig.db.reader(),
        &rack,
        &["idle", "waiting", "stranded", "woken"],
    )
    .await;
    let mut reader = rig.db.reader();
    let mut waiting = fence(&hosts[1], 1);
    waiting.status = OperationStatus::NeedsOperator;
    for operation in [waiting, fence(&hosts[2], 1), fence(&hosts[3], 1)] {
        insert_operation(&rig.db, &operation).await.unwrap();
    }
    update_host(&mut rig.db.reader(), &hosts[3], Some(at(5)))
        .await
        .unwrap();
    assert_eq!(stranded_hosts(&mut reader, 10).await.unwrap(), [hosts[2].id]);
}
