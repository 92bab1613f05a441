//! Segments, methods and plans.

use std::collections::BTreeMap;

use ringfence_core::{
    ByScope, FencingKind, Level, Method, MethodId, MethodTimes, Plan, PlanId, PlanScope, PlanStage, Resource,
    SecretReference, TaskSpec, default_sufficient_sets,
};
use ringfence_db::{
    configuration_revision, delete_method, delete_plan, insert_host, insert_method, insert_plan,
    insert_segment, list_methods, list_plans, list_segments, method, methods_by_name, plan, plan_for,
    see_host, segment as read_segment, update_method, update_plan, update_segment,
};
use uuid::Uuid;

use crate::rig::Rig;
use crate::site::{assert_duplicate, at, host, one_host, segment};

crate::stories!(configuration:
    a_plan_for_the_host_goes_before_one_for_its_type_and_that_before_the_default,
    a_scope_has_one_plan,
    names_are_unique,
    a_change_of_another_revision_is_refused,
    a_segment_is_read_as_it_was_written,
    a_method_is_read_as_it_was_written,
    a_plan_is_read_as_it_was_written,
    lists_are_sorted_by_name_and_limited,
    every_change_of_a_plan_or_a_method_is_counted_and_read_with_a_host,
);

async fn every_change_of_a_plan_or_a_method_is_counted_and_read_with_a_host(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let mut run = rig.db.reader();
    let mut counted = Vec::new();
    let mut plan = plan_named("p", PlanScope::Default);
    let mut method = method_named("m");
    for change in 0..6 {
        let before = configuration_revision(&mut run).await.unwrap();
        match change {
            0 => insert_method(&mut run, &method).await.unwrap(),
            1 => insert_plan(&mut run, &plan).await.unwrap(),
            2 => {
                method.revision = 2;
                assert!(update_method(&mut run, &method, 1).await.unwrap());
            }
            3 => {
                plan.revision = 2;
                assert!(update_plan(&mut run, &plan, 1).await.unwrap());
            }
            4 => assert!(delete_plan(&mut run, plan.id).await.unwrap()),
            _ => assert!(delete_method(&mut run, method.id).await.unwrap()),
        }
        let after = configuration_revision(&mut run).await.unwrap();
        assert!(after > before, "change {change}");
        let seen = see_host(&mut run, &host.name).await.unwrap().unwrap();
        assert_eq!(seen.configuration, after);
        counted.push(after);
    }
    update_segment_of(&rig.db, &host).await;
    let still = configuration_revision(&mut run).await.unwrap();
    assert_eq!(
        Some(&still),
        counted.last(),
        "a change of a host or a segment is not counted"
    );
}

async fn update_segment_of(db: &ringfence_db::Database, host: &ringfence_core::Host) {
    let mut run = db.reader();
    let name = host.segment_id.0.to_string();
    let mut known = read_segment(&mut run, &name).await.unwrap().unwrap();
    known.revision += 1;
    assert!(
        update_segment(&mut run, &known, known.revision - 1)
            .await
            .unwrap()
    );
    crate::site::update_host(&mut run, host, None).await.unwrap();
}

pub fn plan_named(name: &str, scope: PlanScope) -> Plan {
    Plan {
        id: PlanId(Uuid::new_v4()),
        name: name.to_owned(),
        scope,
        stages: Vec::new(),
        sufficient_sets: default_sufficient_sets(),
        revision: 1,
        created_at: at(0),
        updated_at: at(0),
    }
}

pub fn method_named(name: &str) -> Method {
    Method {
        id: MethodId(Uuid::new_v4()),
        name: name.to_owned(),
        resource: Resource::Power,
        driver: "fence-agent".to_owned(),
        parameters: BTreeMap::from([
            ("agent".to_owned(), "fence_ipmilan".to_owned()),
            ("ip".to_owned(), "${host.name}.bmc.example".to_owned()),
        ]),
        secrets: BTreeMap::from([(
            "password".to_owned(),
            SecretReference::parse("env:BMC_PASSWORD").unwrap(),
        )]),
        zone: Some("cell-7".to_owned()),
        times: MethodTimes {
            retries: 5,
            ..MethodTimes::default()
        },
        revision: 1,
        created_at: at(0),
        updated_at: at(0),
    }
}

async fn a_plan_for_the_host_goes_before_one_for_its_type_and_that_before_the_default(rig: &Rig) {
    let mut reader = rig.db.reader();
    assert_eq!(plan_for(&mut reader, "node-1", Some("gpu")).await.unwrap(), None);
    let scopes = [
        ("for-all", PlanScope::Default),
        ("for-gpu", PlanScope::HostType("gpu".to_owned())),
        ("for-node-1", PlanScope::Host("node-1".to_owned())),
    ];
    for (name, scope) in scopes {
        insert_plan(&mut reader, &plan_named(name, scope)).await.unwrap();
    }
    // A program that knows all plans chooses as the database does.
    let all = list_plans(&mut reader, 10).await.unwrap();
    let all: ByScope<_> = all.into_iter().map(|plan| (plan.scope.clone(), plan)).collect();
    for (name, host_type, expected) in [
        ("node-1", Some("gpu"), "for-node-1"),
        ("node-1", None, "for-node-1"),
        ("node-2", Some("gpu"), "for-gpu"),
        ("node-2", Some("cpu"), "for-all"),
        ("node-2", None, "for-all"),
        // The name of a type is not the name of a host.
        ("gpu", None, "for-all"),
        ("node-2", Some("node-1"), "for-all"),
    ] {
        let found = plan_for(&mut reader, name, host_type).await.unwrap().unwrap();
        assert_eq!(found.name, expected, "for {name} of type {host_type:?}");
        let mut host = host(name, &segment("rack-1"));
        host.host_type = host_type.map(str::to_owned);
        assert_eq!(all.for_host(&host), Some(&found));
    }
}

async fn a_scope_has_one_plan(rig: &Rig) {
    let mut reader = rig.db.reader();
    for (i, scope) in [
        PlanScope::Default,
        PlanScope::HostType("a".to_owned()),
        PlanScope::Host("a".to_owned()),
    ]
    .into_iter()
    .enumerate()
    {
        insert_plan(&mut reader, &plan_named(&format!("first-{i}"), scope.clone()))
            .await
            .unwrap();
        assert_duplicate(insert_plan(&mut reader, &plan_named(&format!("second-{i}"), scope)).await);
    }
}

async fn names_are_unique(rig: &Rig) {
    let (rack, node) = one_host(&rig.db).await;
    let mut reader = rig.db.reader();
    assert_duplicate(insert_segment(&mut reader, &segment(&rack.name)).await);
    assert_duplicate(insert_host(&mut reader, &host(&node.name, &rack)).await);
    insert_method(&mut reader, &method_named("bmc")).await.unwrap();
    assert_duplicate(insert_method(&mut reader, &method_named("bmc")).await);
    insert_plan(&mut reader, &plan_named("plan", PlanScope::Default))
        .await
        .unwrap();
    assert_duplicate(insert_plan(&mut reader, &plan_named("plan", PlanScope::Host("x".to_owned()))).await);

    let other = segment("rack-2");
    insert_segment(&mut reader, &other).await.unwrap();
    let renamed = ringfence_core::Segment {
        name: rack.name,
        revision: 2,
        ..other
    };
    assert_duplicate(update_segment(&mut reader, &renamed, 1).await);
}

async fn a_change_of_another_revision_is_refused(rig: &Rig) {
    let mut reader = rig.db.reader();
    let (mut rack, _) = one_host(&rig.db).await;
    rack.revision = 2;
    assert!(update_segment(&mut reader, &rack, 1).await.unwrap());
    assert!(!update_segment(&mut reader, &rack, 1).await.unwrap());

    let mut bmc = method_named("bmc");
    insert_method(&mut reader, &bmc).await.unwrap();
    bmc.revision = 2;
    assert!(update_method(&mut reader, &bmc, 1).await.unwrap());
    assert!(!update_method(&mut reader, &bmc, 1).await.unwrap());
    assert!(delete_method(&mut reader, bmc.id).await.unwrap());
    assert!(!delete_method(&mut reader, bmc.id).await.unwrap());

    let mut gone = plan_named("plan", PlanScope::Default);
    insert_plan(&mut reader, &gone).await.unwrap();
    gone.revision = 2;
    assert!(update_plan(&mut reader, &gone, 1).await.unwrap());
    assert!(!update_plan(&mut reader, &gone, 1).await.unwrap());
    assert!(delete_plan(&mut reader, gone.id).await.unwrap());
    assert!(!update_plan(&mut reader, &gone, 2).await.unwrap());
}

async fn a_segment_is_read_as_it_was_written(rig: &Rig) {
    let mut reader = rig.db.reader();
    let mut written = segment("zelle-7");
    written.description = "Rack 7 „Süd“, 機架 7 🔥 '; DROP TABLE hosts; --".to_owned();
    insert_segment(&mut reader, &written).await.unwrap();
    for id_or_name in [
        written.name.clone(),
        written.id.to_string(),
        written.id.to_string().to_uppercase(),
    ] {
        assert_eq!(
            read_segment(&mut reader, &id_or_name).await.unwrap().as_ref(),
            Some(&written)
        );
    }
    let changed = ringfence_core::Segment {
        name: "zelle-8".to_owned(),
        policy: ringfence_core::SegmentPolicy {
            self_fencing_timeout_s: Some(60),
            restarts: 3,
            auto_rejoin: true,
            ..written.policy.clone()
        },
        revision: 2,
        updated_at: at(9),
        ..written
    };
    assert!(update_segment(&mut reader, &changed, 1).await.unwrap());
    assert_eq!(read_segment(&mut reader, "zelle-8").await.unwrap(), Some(changed));
    assert_eq!(read_segment(&mut reader, "zelle-7").await.unwrap(), None);
}

async fn a_method_is_read_as_it_was_written(rig: &Rig) {
    let mut reader = rig.db.reader();
    let written = method_named("bmc");
    insert_method(&mut reader, &written).await.unwrap();
    assert_eq!(method(&mut reader, "bmc").await.unwrap().as_ref(), Some(&written));
    assert_eq!(
        method(&mut reader, &written.id.to_string())
            .await
            .unwrap()
            .as_ref(),
        Some(&written)
    );
    let names = ["bmc", "unknown"].map(ToOwned::to_owned);
    let by_name = methods_by_name(&mut reader, names).await.unwrap();
    assert_eq!(by_name, BTreeMap::from([("bmc".to_owned(), written.clone())]));
    let changed = Method {
        resource: Resource::Storage,
        driver: "simulated".to_owned(),
        zone: None,
        revision: 2,
        ..written
    };
    assert!(update_method(&mut reader, &changed, 1).await.unwrap());
    assert_eq!(method(&mut reader, "bmc").await.unwrap(), Some(changed));
}

async fn a_plan_is_read_as_it_was_written(rig: &Rig) {
    let mut reader = rig.db.reader();
    let level = |level, name: &str| Level {
        level,
        methods: vec![name.to_owned(), format!("{name}-b")],
    };
    let mut written = plan_named("plan", PlanScope::HostType("gpu".to_owned()));
    written.stages = vec![PlanStage {
        delay_s: 7,
        tasks: vec![TaskSpec {
            kind: FencingKind::PowerOff,
            levels: vec![level(1, "bmc"), level(9, "pdu")],
        }],
    }];
    insert_plan(&mut reader, &written).await.unwrap();
    assert_eq!(
        plan(&mut reader, &written.id.to_string()).await.unwrap().as_ref(),
        Some(&written)
    );
    let changed = Plan {
        scope: PlanScope::Default,
        revision: 2,
        ..written
    };
    assert!(update_plan(&mut reader, &changed, 1).await.unwrap());
    assert_eq!(plan(&mut reader, "plan").await.unwrap(), Some(changed));
}

async fn lists_are_sorted_by_name_and_limited(rig: &Rig) {
    let mut reader = rig.db.reader();
    for name in ["b", "c", "a"] {
        insert_segment(&mut reader, &segment(name)).await.unwrap();
        insert_method(&mut reader, &method_named(name)).await.unwrap();
        insert_plan(&mut reader, &plan_named(name, PlanScope::Host(name.to_owned())))
            .await
            .unwrap();
    }
    let segments = list_segments(&mut reader, 2).await.unwrap();
    assert_eq!(
        segments.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(),
        ["a", "b"]
    );
    let methods = list_methods(&mut reader, 10).await.unwrap();
    assert_eq!(
        methods.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(),
        ["a", "b", "c"]
    );
    let plans = list_plans(&mut reader, 10).await.unwrap();
    assert_eq!(
        plans.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(),
        ["a", "b", "c"]
    );
}
