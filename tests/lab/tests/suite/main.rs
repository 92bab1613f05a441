//! The peers start, misbehave and come back as the tests of other crates expect.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod kubernetes;
mod openstack;
mod real_hosts;

use std::net::TcpStream;
use std::process::Command;

use ringfence_lab::{IpmiBmc, IpmiFault, PostgreSql, RabbitMq, Redfish};

fn listens(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

fn ipmi_power(bmc: &IpmiBmc, verb: &str) -> String {
    let done = Command::new("ipmitool")
        .args([
            "-I",
            "lanplus",
            "-C",
            "3",
            "-N",
            "1",
            "-R",
            "1",
            "-H",
            "127.0.0.1",
        ])
        .args([
            "-U",
            IpmiBmc::USER,
            "-E",
            "-p",
            &bmc.port().to_string(),
            "power",
            verb,
        ])
        .env("IPMI_PASSWORD", IpmiBmc::PASSWORD)
        .output()
        .unwrap();
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

#[test]
fn postgresql_comes_back_on_its_port_after_a_stop_and_after_a_crash() {
    let mut server = PostgreSql::start().unwrap();
    let port = server.port();
    assert!(listens(port));

    server.stop();
    assert!(!listens(port));
    server.start_again().unwrap();
    assert!(listens(port));

    server.crash().unwrap();
    assert!(!listens(port));
    server.start_again().unwrap();
    assert!(
        server
            .url("postgres")
            .ends_with(&format!("@127.0.0.1:{port}/postgres"))
    );
}

#[test]
fn rabbitmq_comes_back_on_its_port_after_a_stop_and_after_a_crash() {
    let mut broker = RabbitMq::start().unwrap();
    let port = broker.port();
    assert!(listens(port));

    broker.stop();
    assert!(!listens(port));
    broker.start_again().unwrap();
    assert!(listens(port));

    broker.crash().unwrap();
    assert!(!listens(port));
    broker.start_again().unwrap();
    assert!(listens(port));
}

#[test]
fn an_ipmi_bmc_switches_power_or_lies_about_it() {
    let bmc = IpmiBmc::start().unwrap();
    assert_eq!(ipmi_power(&bmc, "status"), "Chassis Power is on");

    bmc.set_fault(IpmiFault::Lies).unwrap();
    assert_eq!(ipmi_power(&bmc, "off"), "Chassis Power Control: Down/Off");
    assert!(bmc.is_powered().unwrap());

    bmc.set_fault(IpmiFault::None).unwrap();
    ipmi_power(&bmc, "off");
    assert!(!bmc.is_powered().unwrap());
    assert_eq!(ipmi_power(&bmc, "status"), "Chassis Power is off");

    bmc.silence().unwrap();
    assert_eq!(ipmi_power(&bmc, "status"), "");
    bmc.wake().unwrap();
    bmc.set_powered(true).unwrap();
    assert_eq!(ipmi_power(&bmc, "status"), "Chassis Power is on");
}

#[test]
fn a_redfish_service_shows_its_systems_over_tls() {
    let Some(sushy) = std::env::var_os("RINGFENCE_TEST_SUSHY") else {
        panic!("RINGFENCE_TEST_SUSHY is not set; run this through `cargo xtask test` or `cargo xtask lab`");
    };
    let service = Redfish::start(sushy.as_ref()).unwrap();
    assert!(service.url().starts_with("https://127.0.0.1:"));
    let certificate = std::fs::read_to_string(service.certificate()).unwrap();
    assert!(certificate.starts_with("-----BEGIN CERTIFICATE-----"));
}
