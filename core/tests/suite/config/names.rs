use std::collections::BTreeMap;

use ringfence_core::*;

#[test]
fn names_fit_into_a_path_and_a_log_line() {
    for name in ["a", "compute1", "Compute-1.rack_7.example", "9", &"x".repeat(255)] {
        assert_eq!(validate_name("name", name), Ok(()), "{name}");
    }
    for name in ["", "-a", ".a", "a b", "a/b", "a\nb", "ä", &"x".repeat(256)] {
        assert!(validate_name("name", name).is_err(), "{name:?}");
    }
}

#[test]
fn a_name_never_reads_as_a_uuid() {
    for name in [
        "67e55044-10b1-426f-9247-bb680e5fe0c8",
        "67e5504410b1426f9247bb680e5fe0c8",
    ] {
        let problem = validate_name("name", name).unwrap_err();
        assert!(problem.detail.contains("UUID"));
    }
}

#[test]
fn a_reason_is_a_line_of_text() {
    assert_eq!(validate_reason("kernel panic, siehe Ticket №7"), Ok(()));
    assert_eq!(validate_reason(&"ö".repeat(255)), Ok(()));
    for reason in ["", "   ", "two\nlines", &"x".repeat(256)] {
        assert!(validate_reason(reason).is_err(), "{reason:?}");
    }
}

#[test]
fn a_secret_is_a_reference_and_nothing_else() {
    assert_eq!(
        SecretReference::parse("env:BMC_PASSWORD"),
        Ok(SecretReference::Env("BMC_PASSWORD".to_owned()))
    );
    assert_eq!(
        SecretReference::parse("file:/run/secrets/bmc"),
        Ok(SecretReference::File("/run/secrets/bmc".to_owned()))
    );
    for text in [
        "",
        "hunter2",
        "env:",
        "env:A B",
        "env:A=B",
        "file:",
        "file:relative",
        "file:/a\nb",
        "ENV:A",
        "vault:a",
        "secret:bmc/password",
        "secret:lab/bmc",
        "secret:lab/Bmc/password",
        "secret:lab/-bmc/password",
        "secret:lab/bmc/../password",
        "secret:lab/bmc/..",
        "secret:lab/bmc/pass word",
        "secret:/bmc/password",
        "secret:l b/bmc/password",
    ] {
        assert!(SecretReference::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_secret_in_the_wrong_place_is_not_repeated() {
    let help = SecretReference::parse("hunter2").unwrap_err();
    assert!(!help.contains("hunter2"));
    assert!(help.contains("env:NAME") && help.contains("file:/"));
    let json = serde_json::from_str::<SecretReference>("\"hunter2\"").unwrap_err();
    assert!(!json.to_string().contains("hunter2"), "{json}");
}

#[test]
fn a_reference_is_read_as_it_was_written() {
    for text in ["env:A", "file:/a b", "secret:lab/bmc.rack-1/user_1.password"] {
        let reference = SecretReference::parse(text).unwrap();
        assert_eq!(reference.to_string(), text);
        let json = serde_json::to_string(&reference).unwrap();
        assert_eq!(serde_json::from_str::<SecretReference>(&json).unwrap(), reference);
    }
}

fn rule(condition: &str) -> ConditionRule {
    ConditionRule {
        condition: condition.to_owned(),
        status: ConditionStatus::True,
        for_s: 0,
        action: ConditionAction::Report,
    }
}

#[test]
fn a_policy_is_within_its_ranges() {
    assert_eq!(validate_policy(&SegmentPolicy::default()), Ok(()));
    let wrong = SegmentPolicy {
        self_fencing_timeout_s: Some(0),
        settle_s: 601,
        restarts: 101,
        restart_delay_s: 0,
        auto_rejoin: true,
        rejoin_wait_s: 86_401,
        workloads_zone: Some("no zone".to_owned()),
        quarantine: Some(QuarantinePolicy {
            fences: 1,
            within_s: 2_592_001,
        }),
        fencing: FencingPolicy {
            automatic: true,
            after_s: 3_601,
            at_most: 0,
            within_s: 9,
            at_most_percent: 101,
            at_once: Some(0),
            per_minute: Some(10_001),
            quiet_s: Some(9),
            sight: Some(SightPolicy {
                at_most_percent: 100,
                quiet_s: 9,
            }),
            kdump_timeout_s: Some(9),
            groups: bad_groups(),
            ceph: ["main", "no ceph", "main"].map(str::to_owned).into(),
            queries: (0..9).map(|number| format!("q{}", number.min(7))).collect(),
        },
        heartbeats: ["lease", "no lease", "lease", "nfs", "san"]
            .map(str::to_owned)
            .into(),
        conditions: vec![
            ConditionRule {
                for_s: 86_401,
                ..rule("KernelDeadlock")
            },
            rule("kernel deadlock"),
            rule("KernelDeadlock"),
        ],
        alarms: bad_alarms(),
        evacuation: EvacuationPolicy {
            metadata_key: String::new(),
            at_once: 65,
            timeout_s: 9,
            retries: 11,
            in_segment: Some(MoveLimits::default()),
            on_platform: Some(MoveLimits {
                at_once: Some(0),
                per_minute: Some(10_001),
            }),
            spare_hosts: vec!["one".to_owned(), "one".to_owned(), "?".to_owned()],
            ..EvacuationPolicy::default()
        },
    };
    let fields: Vec<_> = validate_policy(&wrong)
        .unwrap_err()
        .0
        .into_iter()
        .map(|p| p.field)
        .collect();
    assert_eq!(
        fields,
        [
            "policy.self_fencing_timeout_s",
            "policy.settle_s",
            "policy.restarts",
            "policy.restart_delay_s",
            "policy.rejoin_wait_s",
            "policy.workloads_zone",
            "policy.quarantine.fences",
            "policy.quarantine.within_s",
            "policy.heartbeats",
            "policy.heartbeats[1]",
            "policy.heartbeats[2]",
            "policy.fencing.after_s",
            "policy.fencing.at_most",
            "policy.fencing.within_s",
            "policy.fencing.at_most_percent",
            "policy.fencing.at_once",
            "policy.fencing.per_minute",
            "policy.fencing.quiet_s",
            "policy.fencing.kdump_timeout_s",
            "policy.fencing.sight.at_most_percent",
            "policy.fencing.sight.quiet_s",
            "policy.fencing.groups[0]",
            "policy.fencing.groups[1].label",
            "policy.fencing.groups[1].at_once",
            "policy.fencing.groups[2].label",
            "policy.fencing.groups[2].at_most_out",
            "policy.fencing.ceph[1]",
            "policy.fencing.ceph[2]",
            "policy.fencing.queries",
            "policy.fencing.queries[8]",
            "policy.conditions[0].for_s",
            "policy.conditions[1].condition",
            "policy.conditions[2]",
            "policy.alarms",
            "policy.alarms[0].times",
            "policy.alarms[0].within_s",
            "policy.alarms[1].times",
            "policy.alarms[1].within_s",
            "policy.alarms[2].condition",
            "policy.alarms[3].condition",
            "policy.alarms[4].condition",
            "policy.alarms[7]",
            "policy.evacuation.at_once",
            "policy.evacuation.timeout_s",
            "policy.evacuation.retries",
            "policy.evacuation.metadata_key",
            "policy.evacuation.in_segment",
            "policy.evacuation.on_platform.at_once",
            "policy.evacuation.on_platform.per_minute",
            "policy.evacuation.spare_hosts[1]",
            "policy.evacuation.spare_hosts[2]",
        ]
    );
}

/// Two with numbers out of range, three with names that are not allowed, two that may be side by side, and one of them again and again.
fn bad_alarms() -> Vec<AlarmRule> {
    let alarm = |problem, condition: Option<&str>, times, within_s| AlarmRule {
        problem,
        condition: condition.map(str::to_owned),
        times,
        within_s,
    };
    let sick = HostProblem::Condition;
    let mut alarms = vec![
        alarm(HostProblem::Failed, None, 0, 59),
        alarm(HostProblem::Fenced, None, 33, 2_592_001),
        alarm(HostProblem::Fenced, Some("KernelDeadlock"), 2, 60),
        alarm(sick, Some("kernel deadlock"), 2, 60),
        alarm(sick, Some("Unruled"), 2, 60),
        alarm(sick, Some("KernelDeadlock"), 2, 60),
        alarm(sick, Some("KernelDeadlock"), 3, 60),
        alarm(sick, Some("KernelDeadlock"), 2, 60),
    ];
    alarms.extend((0..9).map(|number| alarm(HostProblem::Returned, None, 1, 60 + number)));
    alarms
}

#[test]
fn an_alarm_that_is_refused_says_what_is_allowed() {
    let policy = SegmentPolicy {
        conditions: vec![rule("KernelDeadlock")],
        alarms: bad_alarms(),
        ..SegmentPolicy::default()
    };
    let told: Vec<String> = validate_policy(&policy)
        .unwrap_err()
        .0
        .into_iter()
        .map(|problem| problem.to_string())
        .collect();
    let expected = [
        "policy.alarms: has 17 rules; 0 to 16 are allowed",
        "policy.alarms[0].times: is 0; 1 to 32 is allowed",
        "policy.alarms[0].within_s: is 59; 60 to 2592000 is allowed",
        "policy.alarms[1].times: is 33; 1 to 32 is allowed",
        "policy.alarms[1].within_s: is 2592001; 60 to 2592000 is allowed",
        "policy.alarms[2].condition: is \"KernelDeadlock\" beside the problem fenced; a name is allowed beside the problem condition alone",
        "policy.alarms[3].condition: is \"kernel deadlock\"; 1 to 316 characters without blanks and control characters are allowed",
        "policy.alarms[4].condition: is \"Unruled\", for which policy.conditions has no rule; the condition of one of its rules is allowed",
        "policy.alarms[7]: is given a second time; the first is alarms[5]",
    ];
    assert_eq!(told, expected);
}

fn bad_groups() -> Vec<GroupRule> {
    let rule = |label: Option<&str>, at_once, at_most_out| GroupRule {
        label: label.map(str::to_owned),
        at_once,
        at_most_out,
        majority: false,
    };
    vec![
        rule(Some("rack"), None, None),
        rule(Some("no label"), Some(0), None),
        rule(Some("rack"), Some(1), Some(10_001)),
    ]
}

#[test]
fn rules_for_groups_that_no_host_is_of_or_that_hold_nothing_or_everything_are_refused() {
    let known = |hosts: u64| [("etcd".to_owned(), [("east".to_owned(), hosts)].into())].into();
    let check_rule = |rule: GroupRule, hosts| {
        let rules = std::slice::from_ref(&rule);
        let mut problems = Problems::default();
        check_groups(rules, &[], (hosts, &known(hosts)), &mut problems);
        let mut none = Problems::default();
        check_groups(rules, rules, (hosts, &known(hosts)), &mut none);
        assert!(none.0.is_empty(), "a rule that is there stays: {none}");
        problems.to_string()
    };
    let check = |label: &str, at_most_out, majority, hosts| {
        let rule = GroupRule {
            label: Some(label.to_owned()).filter(|label| !label.is_empty()),
            at_once: None,
            at_most_out,
            majority,
        };
        check_rule(rule, hosts)
    };
    let at_once = |at_once, hosts| {
        let rule = GroupRule {
            at_once: Some(at_once),
            ..GroupRule::default()
        };
        check_rule(rule, hosts)
    };
    assert_eq!(check("etcd", Some(2), true, 3), "");
    assert_eq!(check("", Some(2), true, 3), "");
    // The hosts are to be added.
    assert_eq!(check("", Some(2), true, 0), "");
    assert_eq!(at_once(9, 0) + &at_once(9, 9), "");
    for (told, why) in [
        (
            check("ectd", Some(1), false, 3),
            "no host has this label; labels of hosts are etcd",
        ),
        (
            check("etcd", Some(3), false, 3),
            "would hold nothing; fewer than 3 are allowed",
        ),
        (
            check("etcd", None, true, 2),
            "no host of it could be fenced by itself",
        ),
        (
            check("", Some(3), false, 3),
            "is 3, and there are 3 hosts: it would hold nothing; fewer than 3 are allowed",
        ),
        (
            check("", None, true, 2),
            "there are 2 hosts: no host of it could be fenced by itself",
        ),
        (
            at_once(10, 9),
            "is 10, and there are 9 hosts: it would hold nothing; 1 to 9 is allowed",
        ),
    ] {
        assert!(told.contains(why), "{told}");
    }
}

#[test]
fn labels_are_checked() {
    let parameters = BTreeMap::new();
    let check = |labels: Labels| {
        validate_host(&HostDescription {
            name: "compute1",
            zone: "here",
            host_type: None,
            backend: Backend::None,
            cloud: None,
            known_as: None,
            labels: &labels,
            parameters: &parameters,
        })
    };
    let label = |name: &str, value: &str| Labels::from([(name.to_owned(), value.to_owned())]);
    for fine in [
        label("rack", "r1"),
        label("node-role.kubernetes.io/control-plane", ""),
        label("topology.kubernetes.io/zone", "eu-1.a_b"),
    ] {
        assert_eq!(check(fine), Ok(()));
    }
    let many = (0..33)
        .map(|number| (format!("l{number}"), String::new()))
        .collect();
    for (wrong, field) in [
        (label("no label", "r1"), "labels"),
        (label("", "r1"), "labels"),
        (label("rack", "r 1"), "labels.rack"),
        (label("rack", &"r".repeat(64)), "labels.rack"),
        (many, "labels"),
    ] {
        assert_eq!(check(wrong).unwrap_err().0[0].field, field);
    }
}

#[test]
fn a_policy_with_an_unknown_field_is_refused() {
    let error = serde_json::from_str::<SegmentPolicy>("{\"restart\":3}").unwrap_err();
    assert!(error.to_string().contains("restarts"), "{error}");
}

#[test]
fn words_are_read_as_they_are_written() {
    for kind in ProofKind::ALL {
        assert_eq!(ProofKind::from_word(kind.as_str()), Some(*kind));
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
    }
    for kind in TaskKind::all() {
        assert_eq!(TaskKind::from_word(kind.as_str()), Some(kind));
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
    }
    for status in OperationStatus::ALL {
        assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
    }
    for state in FailureState::ALL {
        assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
    }
}
