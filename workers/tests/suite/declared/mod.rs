//! Declarations of the drivers: which methods are accepted, which device each method means, and which parameters tell devices apart.

mod methods;
mod own_devices;

use std::collections::BTreeMap;

use ringfence_core::*;
use uuid::Uuid;

fn method(name: &str, driver: &str, resource: Resource, parameters: &[(&str, &str)]) -> Method {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let reference = SecretReference::parse("env:PASSWORD").unwrap();
    let drivers = ringfence_workers::catalogue();
    let secrets = drivers.get(driver).unwrap().secrets.iter();
    let secrets = secrets.map(|secret| (secret.name.to_owned(), reference.clone()));
    Method {
        id: MethodId(Uuid::new_v5(&Uuid::nil(), name.as_bytes())),
        name: name.to_owned(),
        resource,
        driver: driver.to_owned(),
        parameters: parameters.iter().map(owned).collect(),
        secrets: secrets.collect(),
        zone: None,
        times: MethodTimes::default(),
        revision: 1,
        created_at: Timestamp::UNIX_EPOCH,
        updated_at: Timestamp::UNIX_EPOCH,
    }
}

/// The method with its placeholders filled in for a host of the cloud `east` with these values.
fn frozen(scope: Option<&PlanScope>, method: &Method, host: &Host) -> Result<FrozenMethod, Problems> {
    let drivers = ringfence_workers::catalogue();
    match scope {
        Some(scope) => FrozenMethod::in_plan(&drivers, scope, method, host),
        None => FrozenMethod::new(&drivers, method, host),
    }
}

#[track_caller]
fn expect_fault(result: Result<(), Problems>, field: &str, words: &[&str]) {
    let faults: BTreeMap<_, _> = result
        .err()
        .unwrap_or_default()
        .0
        .into_iter()
        .map(|problem| (problem.field, problem.detail))
        .collect();
    let detail = faults
        .get(field)
        .unwrap_or_else(|| panic!("{field}: {faults:#?}"));
    assert!(
        words.iter().all(|word| detail.contains(word)),
        "{words:?}: {detail}"
    );
}
