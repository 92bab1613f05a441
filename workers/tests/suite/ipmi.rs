//! The driver `ipmi` with a real BMC that can have faults.

use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use ringfence_core::{FencingKind, FrozenMethod, ObservedState, Outcome, Resource};
use ringfence_workers::{Driver as _, DriverSettings, Ipmi, Report, WorkerError};

use crate::peers::IpmiSim;
use crate::{assert_confirmed, assert_outcome, clock, method, password, seconds, seen};

fn ipmi() -> Ipmi {
    Ipmi::new(DriverSettings::new(clock()).ipmitool, clock())
}

fn bmc(sim: &IpmiSim) -> FrozenMethod {
    let parameters = [
        ("address", "127.0.0.1"),
        ("port", &*sim.port),
        ("username", "admin"),
        ("cipher", "3"),
    ];
    method("ipmi", Resource::Power, &parameters)
}

async fn act(sim: &IpmiSim, kind: FencingKind, budget_s: u64) -> Report {
    ipmi()
        .act_and_observe(kind, &bmc(sim), &password("secret"), seconds(budget_s))
        .await
}

#[tokio::test]
async fn a_bmc_switches_off_and_on_and_both_are_read_back() {
    let sim = IpmiSim::start();
    assert_confirmed(&act(&sim, FencingKind::PowerOff, 20).await, ObservedState::Off);
    assert!(!sim.is_on());
    assert_confirmed(&act(&sim, FencingKind::PowerOn, 20).await, ObservedState::On);
    assert!(sim.is_on());
}

#[tokio::test]
async fn a_chassis_that_is_off_already_is_commanded_off_and_confirmed() {
    let sim = IpmiSim::start();
    sim.switch(false);
    assert_confirmed(&act(&sim, FencingKind::PowerOff, 20).await, ObservedState::Off);
    assert_eq!(sim.commands(), 1);
}

#[tokio::test]
async fn a_chassis_that_is_on_already_is_not_commanded_on() {
    let sim = IpmiSim::start();
    assert_confirmed(&act(&sim, FencingKind::PowerOn, 20).await, ObservedState::On);
    assert_eq!(sim.commands(), 0);
}

#[tokio::test]
async fn a_bmc_that_reports_success_and_stays_on_is_unknown() {
    let sim = IpmiSim::start();
    sim.fault("lie");
    let report = act(&sim, FencingKind::PowerOff, 5).await;
    assert_outcome(&report, Outcome::Unknown, "it last read as on");
    assert!(
        report.detail.contains("Chassis Power Control: Down/Off"),
        "{report:?}"
    );
    assert_eq!(seen(&report), Some(ObservedState::On));
    assert!(sim.commands() >= 1);
}

#[tokio::test]
async fn a_bmc_that_refuses_the_command_is_unknown() {
    let sim = IpmiSim::start();
    sim.fault("fail");
    assert_outcome(
        &act(&sim, FencingKind::PowerOff, 4).await,
        Outcome::Unknown,
        "it last read as on",
    );
}

#[tokio::test]
async fn a_silent_bmc_is_unknown_within_the_budget() {
    let sim = IpmiSim::start();
    sim.silence();
    let started = Instant::now();
    let report = act(&sim, FencingKind::PowerOff, 4).await;
    assert!(started.elapsed() <= seconds(4), "{:?}", started.elapsed());
    assert_outcome(&report, Outcome::Unknown, "could not be read");
    assert_eq!(report.observation, None);
}

#[tokio::test]
async fn a_bmc_that_is_too_slow_is_unknown_within_the_budget() {
    let sim = IpmiSim::start();
    sim.fault("slow");
    let started = Instant::now();
    let report = act(&sim, FencingKind::PowerOff, 5).await;
    assert!(started.elapsed() <= seconds(5), "{:?}", started.elapsed());
    assert_eq!(report.outcome, Outcome::Unknown, "{report:?}");
}

#[tokio::test]
async fn a_wrong_password_looks_like_silence_and_is_unknown() {
    let sim = IpmiSim::start();
    let report = ipmi()
        .act_and_observe(
            FencingKind::PowerOff,
            &bmc(&sim),
            &password("wr0ng-one"),
            seconds(4),
        )
        .await;
    assert_outcome(&report, Outcome::Unknown, "Unable to establish IPMI v2");
    assert!(sim.is_on());
}

#[tokio::test]
async fn a_cipher_that_the_bmc_lacks_is_refused() {
    let sim = IpmiSim::start();
    let mut method = bmc(&sim);
    method.parameters.insert("cipher".to_owned(), "17".to_owned());
    let error = ipmi()
        .observe(&method, &password("secret"), seconds(10))
        .await
        .unwrap_err();
    assert!(matches!(error, WorkerError::Refused { .. }), "{error:?}");
}

#[tokio::test]
async fn without_ipmitool_every_task_is_refused() {
    let ipmi = Ipmi::new("/nonexistent/ipmitool".into(), clock());
    let parameters = [("address", "127.0.0.1"), ("username", "admin")];
    let method = method("ipmi", Resource::Power, &parameters);
    let report = ipmi
        .act_and_observe(FencingKind::PowerOff, &method, &password("secret"), seconds(5))
        .await;
    assert_outcome(&report, Outcome::Refused, "is not installed");
}

#[tokio::test]
async fn the_password_is_in_no_argument() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("ipmitool");
    let log = dir.path().join("log");
    let script = format!(
        "#!/bin/sh\necho \"$@ / $IPMI_PASSWORD\" > {}\necho Chassis Power is off\n",
        log.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let parameters = [
        ("address", "10.0.0.1"),
        ("username", "admin"),
        ("privilege", "OPERATOR"),
    ];
    let method = method("ipmi", Resource::Power, &parameters);
    let report = Ipmi::new(program, clock())
        .act_and_observe(FencingKind::PowerOff, &method, &password("hunter2"), seconds(5))
        .await;
    assert_confirmed(&report, ObservedState::Off);
    assert_eq!(
        std::fs::read_to_string(log).unwrap().trim(),
        "-I lanplus -C 17 -H 10.0.0.1 -p 623 -U admin -L OPERATOR -N 1 -R 2 -E chassis power status / hunter2"
    );
}
