//! Lists of hosts and operations, in pages.

use ringfence_core::{Backend, FailureState, Host, RejoinWork, Work};
use ringfence_db::{
    Asked, Filters, HOSTS, OPERATIONS, Order, Page, SortKey, Test, Values, count_hosts, delete_host,
    hosts_page, insert_host, insert_segment, operations_page,
};
use uuid::Uuid;

use crate::rig::Rig;
use crate::site::{
    add_hosts, and_hosts_by, at, done, fence, fence_by_power, host, hosts_by, insert_operation, one_host,
    operations_by, segment, update_host,
};

crate::stories!(listing:
    every_order_lists_every_host_once_in_pages,
    a_page_after_a_changed_host_continues_from_its_present_place,
    a_page_after_a_removed_host_is_empty,
    several_sort_keys_in_either_direction_list_every_host_once,
    each_filter_selects_hosts,
    all_tests_of_one_column_must_pass,
    filters_and_pages_are_combined,
    operations_are_listed_by_time_and_filtered,
    every_declared_filter_and_order_can_be_used,
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

async fn walk(rig: &Rig, filter: &Filters, mut page: Page) -> Vec<Host> {
    let mut all = Vec::new();
    loop {
        let rows = hosts_page(&mut rig.db.reader(), filter, &page).await.unwrap();
        assert!(rows.len() <= page.limit as usize);
        let Some(last) = rows.last() else { return all };
        page.marker = Some(last.host.id.0);
        all.extend(rows.into_iter().map(|row| row.host));
        assert!(all.len() < 1000, "the pages do not end");
    }
}

async fn every_order_lists_every_host_once_in_pages(rig: &Rig) {
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
                let seen = walk(rig, &Filters::default(), page(sort, descending, limit)).await;
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

async fn a_page_after_a_changed_host_continues_from_its_present_place(rig: &Rig) {
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
    let rows = hosts_page(&mut rig.db.reader(), &Filters::default(), &after)
        .await
        .unwrap();
    assert_eq!(
        rows.iter().map(|row| row.host.name.as_str()).collect::<Vec<_>>(),
        ["d"]
    );
}

/// A caller must see that its marker is gone; a list that began again from the top would never end.
async fn a_page_after_a_removed_host_is_empty(rig: &Rig) {
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
            let rows = hosts_page(&mut rig.db.reader(), &Filters::default(), &after)
                .await
                .unwrap();
            assert!(rows.is_empty());
        }
    }
}

async fn several_sort_keys_in_either_direction_list_every_host_once(rig: &Rig) {
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
                let seen = walk(rig, &Filters::default(), page).await;
                assert_eq!(seen, expected, "{sort:?}, {limit} a page");
            }
        }
    }
}

async fn all_tests_of_one_column_must_pass(rig: &Rig) {
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
    let times = |times: [Test<i64>; 2]| {
        let both = times.into_iter().map(|test| match test {
            Test::Above(s) => Test::Above(at(s).into()),
            Test::AtMost(s) => Test::AtMost(at(s).into()),
            Test::AtLeast(s) => Test::AtLeast(at(s).into()),
            Test::Below(s) => Test::Below(at(s).into()),
            Test::OneOf(_) | Test::NoneOf(_) => unreachable!(),
        });
        both.fold(Filters::default(), |filters, test| {
            and_hosts_by(filters, "created_at", test)
        })
    };
    let names = ["node-0", "node-1", "it's"].map(Asked::from).to_vec();
    let cases: [(Filters, &[&str]); 5] = [
        (
            and_hosts_by(
                times([Test::AtLeast(1), Test::Below(4)]),
                "created_at",
                Test::NoneOf(vec![at(2).into()]),
            ),
            &["node-1", "node-3"],
        ),
        (times([Test::Above(1), Test::AtMost(3)]), &["node-2", "node-3"]),
        (
            hosts_by("type", Test::NoneOf(vec!["even".into()])),
            &["node-1", "node-3", "node-5"],
        ),
        (
            and_hosts_by(
                hosts_by("name", Test::OneOf(names)),
                "type",
                Test::is("even".into()),
            ),
            &["node-0"],
        ),
        (
            hosts_by("failure_state", Test::NoneOf(vec!["UNKNOWN".into()])),
            &[],
        ),
    ];
    for (filter, expected) in cases {
        let seen = walk(rig, &filter, page(SortKey::Name, false, 2)).await;
        let seen: Vec<_> = seen.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(seen, expected, "{filter:?}");
    }
}

async fn each_filter_selects_hosts(rig: &Rig) {
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

    let is = |name: &str, value: &str| hosts_by(name, Test::is(value.into()));
    let nova = is("backend", "nova");
    let cases: [(Filters, &[&str]); 14] = [
        (
            Filters::default(),
            &["dead", "fenced", "hypervisor", "node", "plain"],
        ),
        (is("fencing_state", "FENCED"), &["fenced"]),
        (
            is("fencing_state", "UNFENCED"),
            &["dead", "hypervisor", "node", "plain"],
        ),
        (is("fencing_state", "no word"), &[]),
        (is("failure_state", "UNREACHABLE"), &["dead"]),
        (is("failure_state", "UP"), &["hypervisor"]),
        (is("backend", "kubernetes"), &["node"]),
        (is("segment", "rack-2"), &["hypervisor", "node"]),
        (is("segment", &other.id.to_string()), &["hypervisor", "node"]),
        (
            is("segment", &other.id.to_string().to_uppercase()),
            &["hypervisor", "node"],
        ),
        (is("segment", "rack"), &[]),
        (is("name", "dead"), &["dead"]),
        (is("name", "dea"), &[]),
        (
            and_hosts_by(nova, "failure_state", Test::is("UNKNOWN".into())),
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

async fn filters_and_pages_are_combined(rig: &Rig) {
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
    let filter = hosts_by("backend", Test::is("nova".into()));
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
    let none = Filters::default();
    for descending in [false, true] {
        let mut page = page(SortKey::CreatedAt, descending, 2);
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
    let id = || Test::is(one.id.to_string().as_str().into());
    let is = |name: &str, word: &str| operations_by(name, Test::is(word.into()));
    let host = OPERATIONS.filter("host").unwrap();
    for (filter, expected) in [
        (operations_by("host", id()), 5),
        (is("host", &one.name), 5),
        (is("host", "no-such"), 0),
        (is("kind", "rejoin"), 2),
        (is("status", "running"), 1),
        (is("status", "running").and(host, id()), 0),
    ] {
        let rows = operations_page(&mut rig.db.reader(), &filter, &all)
            .await
            .unwrap();
        assert_eq!(rows.len(), expected, "{filter:?}");
    }
}

/// The declaration of a list is not checked as SQL when it is compiled: each filter and each order is tried.
async fn every_declared_filter_and_order_can_be_used(rig: &Rig) {
    let value = |values: Values| match values {
        Values::Words(words) => words()[0].into(),
        Values::Names => Asked::from("x"),
        Values::Rows(_) => Uuid::nil().to_string().as_str().into(),
        Values::Numbers => 3.into(),
        Values::Times => at(3).into(),
        Values::Ids => Asked::Id(Uuid::nil()),
        Values::Flag => Asked::from("true"),
    };
    let tests = |asked: Asked| [Test::is(asked.clone()), Test::NoneOf(vec![asked.clone(), asked])];
    let mut reader = rig.db.reader();
    for filter in HOSTS.filters {
        for test in tests(value(filter.values)) {
            let filters = Filters::default().and(*filter, test);
            let all = page(SortKey::Name, false, 9);
            assert_eq!(
                hosts_page(&mut reader, &filters, &all).await.unwrap(),
                [],
                "{filters:?}"
            );
            assert_eq!(
                count_hosts(&mut reader, &filters).await.unwrap(),
                0,
                "{filters:?}"
            );
        }
    }
    for filter in OPERATIONS.filters {
        for test in tests(value(filter.values)) {
            let filters = Filters::default().and(*filter, test);
            let all = page(SortKey::CreatedAt, false, 9);
            assert_eq!(
                operations_page(&mut reader, &filters, &all).await.unwrap(),
                [],
                "{filters:?}"
            );
        }
    }
    for key in HOSTS.sort_keys {
        hosts_page(&mut reader, &Filters::default(), &page(*key, true, 9))
            .await
            .unwrap();
    }
    for key in OPERATIONS.sort_keys {
        operations_page(&mut reader, &Filters::default(), &page(*key, true, 9))
            .await
            .unwrap();
    }
}
