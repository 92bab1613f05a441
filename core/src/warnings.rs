//! Warnings for an admin about a configuration that is accepted nevertheless: hosts, plans and methods may be added in any order, and
//! missing ones may follow.

use std::collections::BTreeMap;

use crate::kdump::has_addresses;
use crate::{Catalogue, Host, KDUMP, Method, Plan, PlanScope, Problems, ProofKind, resolve};

/// Names that are told one by one.
const TOLD: usize = 5;

/// What would keep a host from being fenced, by the plans and methods that there are.
#[must_use]
pub fn host_warnings(
    drivers: &Catalogue,
    host: &Host,
    plans: &[Plan],
    methods: &BTreeMap<String, Method>,
) -> Vec<String> {
    let mut warnings: Vec<String> = unknown_type(host, plans).into_iter().collect();
    let is_unknown = |name: &&String| !methods.contains_key(*name) && *name != KDUMP;
    for name in host.parameters.keys().filter(is_unknown) {
        warnings.push(format!(
            "parameters.{name}: there is no method {name:?}; methods are {}",
            some_of(methods.keys().map(String::as_str))
        ));
    }
    match plan_of(host, plans) {
        None => warnings.push(
            "no plan is for the host: it cannot be fenced until there is one for it, for its type, or by default".to_owned(),
        ),
        Some(plan) => {
            warnings.extend(unresolved(drivers, plan, methods, host));
            warnings.extend(unheard(plan, host));
        }
    }
    warnings
}

/// For which of these hosts a plan cannot be carried out. `hosts` are those that its scope names, and `plans` all that there are.
#[must_use]
pub fn plan_warnings(
    drivers: &Catalogue,
    plan: &Plan,
    plans: &[Plan],
    methods: &BTreeMap<String, Method>,
    hosts: &[Host],
) -> Vec<String> {
    let unknown = match &plan.scope {
        PlanScope::HostType(word) => format!("scope: no host has the type {word:?}"),
        PlanScope::Host(name) => format!("scope: there is no host {name:?}"),
        PlanScope::Default => String::new(),
    };
    if hosts.is_empty() && !unknown.is_empty() {
        return vec![unknown];
    }
    let own = hosts
        .iter()
        .filter(|host| plan_of(host, plans).is_some_and(|own| own.id == plan.id));
    let broken = own.clone().filter_map(|host| {
        let problems = resolve(drivers, plan, methods, host).err()?;
        Some(format!(
            "it cannot be carried out for host {}: {problems}",
            host.name
        ))
    });
    let unheard = own.filter_map(|host| unheard(plan, host));
    broken.take(TOLD).chain(unheard.take(TOLD)).collect()
}

/// A proof that the plan counts and the host cannot give.
fn unheard(plan: &Plan, host: &Host) -> Option<String> {
    let is_named = plan
        .sufficient_sets
        .iter()
        .any(|set| set.contains(&ProofKind::Kdump));
    (is_named && !has_addresses(host)).then(|| {
        format!(
            "plan {} counts kdump, which host {} cannot prove: it names no address from which its messages come, in parameters.{KDUMP}",
            plan.name, host.name
        )
    })
}

/// The plan that counts for a host.
fn plan_of<'a>(host: &Host, plans: &'a [Plan]) -> Option<&'a Plan> {
    let rank = |plan: &&Plan| match &plan.scope {
        PlanScope::Host(name) => (*name == host.name).then_some(0),
        PlanScope::HostType(word) => (host.host_type.as_ref() == Some(word)).then_some(1),
        PlanScope::Default => Some(2),
    };
    let ranked = plans.iter().filter_map(|plan| Some((rank(&plan)?, plan)));
    ranked.min_by_key(|(rank, _)| *rank).map(|(_, plan)| plan)
}

fn unknown_type(host: &Host, plans: &[Plan]) -> Option<String> {
    let own = host.host_type.as_ref()?;
    let types = plans.iter().filter_map(|plan| match &plan.scope {
        PlanScope::HostType(word) => Some(word.as_str()),
        PlanScope::Host(_) | PlanScope::Default => None,
    });
    let types: Vec<&str> = types.collect();
    (!types.contains(&own.as_str())).then(|| {
        format!(
            "type: no plan is for hosts of the type {own:?}; types with a plan are {}",
            some_of(types.into_iter())
        )
    })
}

fn unresolved(
    drivers: &Catalogue,
    plan: &Plan,
    methods: &BTreeMap<String, Method>,
    host: &Host,
) -> Vec<String> {
    let Err(Problems(problems)) = resolve(drivers, plan, methods, host) else {
        return Vec::new();
    };
    let told = |problem| format!("plan {} cannot be carried out for the host: {problem}", plan.name);
    problems.into_iter().map(told).collect()
}

fn some_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let told = names.iter().take(TOLD).copied().collect::<Vec<_>>().join(", ");
    match (names.len(), names.len().saturating_sub(TOLD)) {
        (0, _) => "none".to_owned(),
        (_, 0) => told,
        (_, more) => format!("{told} and {more} more"),
    }
}
