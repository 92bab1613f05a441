//! A method held against the declaration of its driver: nothing missing, nothing unknown, no value that can only be a mistake.

use super::Method;
use super::parameters::is_secret_name;
use crate::driver::{Declaration, Parameter};
use crate::{Problems, Resource};

pub(super) fn check_resource(declared: &Declaration, resource: Resource, problems: &mut Problems) {
    if declared.resources.contains(&resource) {
        return;
    }
    let allowed: Vec<_> = declared.resources.iter().map(|r| r.as_str()).collect();
    problems.add(
        "resource",
        format!(
            "is {}, which driver {} cannot act on; allowed: {}",
            resource.as_str(),
            declared.name,
            allowed.join(", ")
        ),
    );
}

/// What a method alone leaves to its hosts is not missing.
pub(super) fn check_declared(
    declared: &Declaration,
    method: &Method,
    of_host: bool,
    problems: &mut Problems,
) {
    check_missing(declared, method, of_host, problems);
    for (name, value) in &method.parameters {
        check_value(declared, name, value, problems);
    }
    if declared.others.is_none() {
        check_unknown(declared, method, problems);
    }
}

fn check_missing(declared: &Declaration, method: &Method, of_host: bool, problems: &mut Problems) {
    let is_needed = |p: &&Parameter| p.is_required && (of_host || !p.may_come_from_host);
    for parameter in declared.parameters.iter().filter(is_needed) {
        if method.parameters.get(parameter.name).is_none_or(String::is_empty) {
            problems.add(
                format!("parameters.{}", parameter.name),
                format!("is missing; driver {} needs it", declared.name),
            );
        }
    }
    for secret in declared.secrets.iter().filter(|s| s.is_required) {
        if !method.secrets.contains_key(secret.name) {
            problems.add(
                format!("secrets.{}", secret.name),
                format!(
                    "is missing; driver {} needs it, as env:NAME, file:/absolute/path or secret:CLUSTER/SECRET/KEY",
                    declared.name
                ),
            );
        }
    }
}

fn check_value(declared: &Declaration, name: &str, value: &str, problems: &mut Problems) {
    let at = format!("parameters.{name}");
    match (declared.parameter(name), &declared.others) {
        (Some(parameter), _) => {
            if let Some(allowed) = parameter.allowed.filter(|allowed| !(allowed.test)(value)) {
                problems.add(
                    at,
                    format!("is {:?}; {}", without_credentials(value), allowed.words),
                );
            }
        }
        (None, Some(others)) => {
            if let Some(why) = (others.refusal)(name, value) {
                problems.add(at, why);
            }
        }
        (None, None) => {}
    }
}

/// The value, without what stands before the host of a URL.
fn without_credentials(value: &str) -> String {
    let url = value.split_once("://");
    match url.and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1))) {
        Some((scheme, host)) => format!("{scheme}://...@{host}"),
        None => value.to_owned(),
    }
}

fn check_unknown(declared: &Declaration, method: &Method, problems: &mut Problems) {
    let parameters: Vec<_> = declared.parameters.iter().map(|p| p.name).collect();
    let secrets: Vec<_> = declared.secrets.iter().map(|s| s.name).collect();
    let mut unknown = |field: &str, name: &String, known: &[&str]| {
        if !known.contains(&name.as_str()) {
            let allowed = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            problems.add(
                format!("{field}.{name}"),
                format!("is unknown to driver {}; allowed: {allowed}", declared.name),
            );
        }
    };
    for name in method.parameters.keys().filter(|name| !is_secret_name(name)) {
        unknown("parameters", name, &parameters);
    }
    for name in method.secrets.keys() {
        unknown("secrets", name, &secrets);
    }
}
