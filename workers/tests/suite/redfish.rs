//! The driver `redfish` with a real service over TLS.

use ringfence_core::{FencingKind, FrozenMethod, ObservedState, Outcome, Resource};
use ringfence_workers::{Driver as _, Redfish, Report};

use crate::peers::Sushy;
use crate::{assert_confirmed, assert_outcome, clock, method, password, seconds};

fn bmc(sushy: &Sushy, more: &[(&str, &str)]) -> FrozenMethod {
    let parameters = [
        ("address", &*sushy.address),
        ("system", Sushy::SYSTEM),
        ("username", "admin"),
    ];
    method("redfish", Resource::Power, &[&parameters, more].concat())
}

async fn act(kind: FencingKind, method: &FrozenMethod, secret: &str) -> Report {
    Redfish::new(clock())
        .act_and_observe(kind, method, &password(secret), seconds(30))
        .await
}

#[tokio::test]
async fn a_system_is_off_only_once_it_reads_as_off() {
    let sushy = Sushy::start("On");
    let method = bmc(&sushy, &[("ca_file", &sushy.ca_file())]);
    assert_confirmed(
        &act(FencingKind::PowerOff, &method, "secret").await,
        ObservedState::Off,
    );
    assert_confirmed(
        &act(FencingKind::PowerOn, &method, "secret").await,
        ObservedState::On,
    );
}

#[tokio::test]
async fn a_system_that_is_off_already_is_confirmed() {
    let sushy = Sushy::start("Off");
    let method = bmc(&sushy, &[("insecure", "true")]);
    assert_confirmed(
        &act(FencingKind::PowerOff, &method, "secret").await,
        ObservedState::Off,
    );
}

#[tokio::test]
async fn wrong_passwords_unknown_systems_and_untrusted_certificates_have_different_errors() {
    let sushy = Sushy::start("On");
    let trusted = bmc(&sushy, &[("ca_file", &sushy.ca_file())]);
    let report = act(FencingKind::PowerOff, &trusted, "wr0ng-one").await;
    assert_outcome(&report, Outcome::Refused, "the login was refused");

    let mut unknown = trusted.clone();
    unknown
        .parameters
        .insert("system".to_owned(), "/redfish/v1/Systems/nosuch".to_owned());
    assert_outcome(
        &act(FencingKind::PowerOff, &unknown, "secret").await,
        Outcome::Refused,
        "there is nothing at",
    );

    let mut by_name = trusted.clone();
    by_name
        .parameters
        .insert("system".to_owned(), "/redfish/v1/Systems/host1".to_owned());
    assert_outcome(
        &act(FencingKind::PowerOff, &by_name, "secret").await,
        Outcome::Refused,
        "redirects to",
    );

    let untrusted = Redfish::new(clock())
        .observe(&bmc(&sushy, &[]), &password("secret"), seconds(5))
        .await;
    let error = untrusted.unwrap_err().to_string();
    assert!(error.contains("certificate"), "{error}");

    let still = Redfish::new(clock())
        .observe(&trusted, &password("secret"), seconds(5))
        .await
        .unwrap();
    assert_eq!(still.state, ObservedState::On);
}
