use std::collections::BTreeMap;

use ringfence_core::*;
use uuid::Uuid;

use super::drivers::{drivers, method};
use super::expect_fault;
use ringfence_world::plans::start;

pub fn methods() -> BTreeMap<String, Method> {
    let simulated = |name: &str, resource| {
        let device = format!("${{host.name}}-{name}");
        let method = method(name, "outlet", resource, &[("device", &device)]);
        (name.to_owned(), method)
    };
    BTreeMap::from([
        simulated("bmc", Resource::Power),
        simulated("pdu", Resource::Power),
        simulated("ceph", Resource::Storage),
        simulated("switch", Resource::Network),
    ])
}

pub fn spec(kind: FencingKind, levels: &[(u8, &[&str])]) -> TaskSpec {
    let level = |(level, methods): &(u8, &[&str])| Level {
        level: *level,
        methods: methods.iter().map(|name| (*name).to_owned()).collect(),
    };
    TaskSpec {
        kind,
        levels: levels.iter().map(level).collect(),
    }
}

pub fn plan(stages: Vec<Vec<TaskSpec>>) -> Plan {
    Plan {
        id: PlanId(Uuid::from_u128(7)),
        name: "rack".to_owned(),
        scope: PlanScope::Default,
        stages: stages
            .into_iter()
            .map(|tasks| PlanStage { delay_s: 0, tasks })
            .collect(),
        sufficient_sets: default_sufficient_sets(),
        revision: 1,
        created_at: start(),
        updated_at: start(),
    }
}

fn off() -> TaskSpec {
    spec(FencingKind::PowerOff, &[(1, &["bmc"])])
}

fn check(plan: &Plan) -> Result<(), Problems> {
    validate_plan(&drivers(), plan, &methods())
}

#[test]
fn valid_plans_are_accepted() {
    let cut_off = vec![
        spec(FencingKind::StorageFence, &[(1, &["ceph"])]),
        spec(FencingKind::NetworkFence, &[(1, &["switch"])]),
    ];
    let levels = spec(FencingKind::PowerOff, &[(1, &["bmc"]), (9, &["pdu"])]);
    for good in [
        plan(vec![vec![off()]]),
        plan(vec![vec![off()], vec![spec(FencingKind::PowerOn, &[])]]),
        plan(vec![vec![spec(FencingKind::PowerOff, &[(1, &["bmc", "pdu"])])]]),
        plan(vec![cut_off, vec![levels]]),
        plan(Vec::new()),
    ] {
        assert_eq!(check(&good), Ok(()), "{good:?}");
    }
}

#[test]
fn a_method_that_is_missing_or_acts_on_something_else_is_named() {
    let missing = plan(vec![vec![spec(FencingKind::PowerOff, &[(1, &["bcm"])])]]);
    expect_fault(
        check(&missing),
        "stages[0].tasks[0].levels[0].methods[0]",
        &["\"bcm\"", "no method"],
    );
    let wrong = plan(vec![vec![spec(FencingKind::PowerOff, &[(1, &["ceph"])])]]);
    expect_fault(
        check(&wrong),
        "stages[0].tasks[0].levels[0].methods[0]",
        &["storage", "power"],
    );
}

#[test]
fn an_empty_sufficient_set_is_refused() {
    let mut wrong = plan(vec![vec![off()]]);
    wrong.sufficient_sets = vec![SufficientSet::new(), [ProofKind::PowerOff].into()];
    expect_fault(check(&wrong), "sufficient_sets[0]", &["without any proof"]);
    wrong.sufficient_sets.clear();
    expect_fault(check(&wrong), "sufficient_sets", &["1 to 16"]);
}

#[test]
fn a_plan_that_could_never_prove_anything_is_refused() {
    let storage_only = plan(vec![vec![spec(FencingKind::StorageFence, &[(1, &["ceph"])])]]);
    expect_fault(
        check(&storage_only),
        "sufficient_sets",
        &["storage.fence", "never prove"],
    );
    let mut by_hand = plan(Vec::new());
    by_hand.sufficient_sets = vec![[ProofKind::PowerOff].into()];
    expect_fault(check(&by_hand), "sufficient_sets", &["nothing"]);
}

#[test]
fn levels_are_one_to_nine_without_duplicates_and_none_is_empty() {
    let at = "stages[0].tasks[0].levels";
    let of = |levels: &[(u8, &[&str])]| check(&plan(vec![vec![spec(FencingKind::PowerOff, levels)]]));
    expect_fault(of(&[]), at, &["empty"]);
    expect_fault(of(&[(0, &["bmc"])]), &format!("{at}[0].level"), &["1 to 9"]);
    expect_fault(of(&[(10, &["bmc"])]), &format!("{at}[0].level"), &["1 to 9"]);
    expect_fault(
        of(&[(2, &["bmc"]), (2, &["pdu"])]),
        &format!("{at}[1].level"),
        &["already"],
    );
    expect_fault(of(&[(1, &[])]), &format!("{at}[0].methods"), &["1 to 8"]);
    expect_fault(
        of(&[(1, &["bmc", "bmc"])]),
        &format!("{at}[0].methods[1]"),
        &["already"],
    );
}

#[test]
fn a_power_on_is_planned_only_after_a_power_off() {
    let on = || spec(FencingKind::PowerOn, &[]);
    for wrong in [plan(vec![vec![on()], vec![off()]]), plan(vec![vec![off(), on()]])] {
        assert!(
            check(&wrong)
                .unwrap_err()
                .to_string()
                .contains("later stage than power.off")
        );
    }
    let twice = plan(vec![vec![off()], vec![off()]]);
    expect_fault(check(&twice), "stages", &["more than once"]);
    let with_devices = plan(vec![
        vec![off()],
        vec![spec(FencingKind::PowerOn, &[(1, &["bmc"])])],
    ]);
    expect_fault(
        check(&with_devices),
        "stages[1].tasks[0].levels",
        &["must not be given"],
    );
}

#[test]
fn tasks_of_a_rejoin_or_an_evacuation_are_refused_in_a_plan() {
    for kind in [FencingKind::StorageUnfence, FencingKind::NetworkUnfence] {
        let wrong = plan(vec![vec![off()], vec![spec(kind, &[])]]);
        expect_fault(check(&wrong), "stages[1].tasks[0].kind", &["which no plan names"]);
    }
}

#[test]
fn stages_have_tasks_and_limits() {
    expect_fault(
        check(&plan(vec![vec![off()], Vec::new()])),
        "stages[1].tasks",
        &["1 to 16"],
    );
    let mut slow = plan(vec![vec![off()]]);
    slow.stages[0].delay_s = 3_601;
    expect_fault(check(&slow), "stages[0].delay_s", &["0 to 3600"]);
    let storage = || vec![spec(FencingKind::StorageFence, &[(1, &["ceph"])])];
    let long = plan(
        std::iter::repeat_with(storage)
            .take(17)
            .chain([vec![off()]])
            .collect(),
    );
    expect_fault(check(&long), "stages", &["at most 16"]);
}

#[test]
fn an_unknown_field_is_refused() {
    let error = serde_json::from_str::<PlanStage>("{\"tasks\":[],\"delay\":3}").unwrap_err();
    assert!(error.to_string().contains("delay_s"), "{error}");
    assert!(serde_json::from_str::<TaskSpec>("{\"kind\":\"power.reboot\"}").is_err());
}

#[test]
fn a_plan_that_rests_on_untrusted_methods_is_refused() {
    let mut methods = methods();
    let ports = method("ports", "ports", Resource::Network, &[]);
    methods.insert("ports".to_owned(), ports);
    let cut_off = |network: &[(u8, &[&str])]| {
        let tasks = [
            spec(FencingKind::StorageFence, &[(1, &["ceph"])]),
            spec(FencingKind::NetworkFence, network),
        ];
        plan(vec![tasks.to_vec()])
    };
    for weak in [&[(1, &["ports"][..])][..], &[(1, &["switch", "ports"])]] {
        expect_fault(
            validate_plan(&drivers(), &cut_off(weak), &methods),
            "sufficient_sets",
            &["(storage.fence)", "trusted: ports"],
        );
    }
    let strong_first = cut_off(&[(1, &["switch"]), (2, &["ports"])]);
    assert_eq!(validate_plan(&drivers(), &strong_first, &methods), Ok(()));
    let beside_power = plan(vec![vec![
        off(),
        spec(FencingKind::NetworkFence, &[(1, &["ports"])]),
    ]]);
    assert_eq!(validate_plan(&drivers(), &beside_power, &methods), Ok(()));
}

#[test]
fn a_plan_that_counts_kdump_is_taken_and_names_the_hosts_that_cannot_prove_it() {
    let mut by_message = plan(vec![vec![off()]]);
    by_message.sufficient_sets = vec![[ProofKind::Kdump].into()];
    assert_eq!(check(&by_message), Ok(()));
    let by_power = plan(vec![vec![off()]]);
    let mut host = ringfence_world::plans::host();
    let told = |plan: &Plan, host: &Host| {
        let (plans, hosts) = (std::slice::from_ref(plan), std::slice::from_ref(host));
        let of_plan = plan_warnings(&drivers(), plan, plans, &methods(), hosts);
        let of_host = host_warnings(&drivers(), host, plans, &methods());
        assert_eq!(of_plan, of_host);
        of_plan
    };
    assert!(told(&by_power, &host).is_empty());
    let [warning] = told(&by_message, &host).try_into().unwrap();
    assert!(warning.contains("parameters.kdump"), "{warning}");
    let addresses = Parameters::from([("addresses".to_owned(), "192.0.2.1".to_owned())]);
    host.parameters.insert(KDUMP.to_owned(), addresses);
    assert!(told(&by_message, &host).is_empty());
}
