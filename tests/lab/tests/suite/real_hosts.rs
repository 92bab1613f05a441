//! Virtual hosts run, write, freeze and die as other tests expect.

use std::time::{Duration, Instant};

use ringfence_lab::{IpmiFault, VmHost, VmImage, VmStore};

use super::ipmi_power;

const PATIENCE: Duration = Duration::from_secs(60);
/// Time in which a host that runs and has its export writes dozens of records.
const A_WHILE: Duration = Duration::from_secs(3);

fn image() -> VmImage {
    VmImage::from_environment()
        .expect("RINGFENCE_TEST_VM is not set; run this through `cargo xtask test` or `cargo xtask lab`")
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not seen: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn landed(store: &VmStore, boot: &str) -> usize {
    let landed = store.landed().unwrap();
    landed.iter().filter(|landed| landed.record.boot == boot).count()
}

fn until_it_writes(store: &VmStore, boot: &str) {
    let before = landed(store, boot);
    until("new records", || landed(store, boot) > before + 10);
}

/// Waits until the writes that a stopped host has already sent have landed.
fn until_all_has_landed(store: &VmStore, boot: &str) {
    until("stillness", || {
        let before = landed(store, boot);
        std::thread::sleep(Duration::from_secs(1));
        landed(store, boot) == before
    });
}

fn assert_quiet(store: &VmStore, boot: &str) {
    let before = landed(store, boot);
    std::thread::sleep(A_WHILE);
    assert_eq!(landed(store, boot), before);
}

#[test]
fn a_host_writes_while_it_runs_and_its_export_is_open() {
    let store = VmStore::start(&["host1"]).unwrap();
    let host = VmHost::start(&image(), &store, "host1").unwrap();
    let boot = host.until_boot(1).unwrap();
    until_it_writes(&store, &boot);
    until("its answer", || host.address().ask().as_ref() == Some(&boot));

    host.unplug().unwrap();
    until("silence", || host.address().ask().is_none());
    until_it_writes(&store, &boot);
    host.plug().unwrap();
    until("its answer", || host.address().ask().is_some());

    host.freeze().unwrap();
    assert_quiet(&store, &boot);
    host.thaw().unwrap();
    until_it_writes(&store, &boot);

    host.hang().unwrap();
    until_all_has_landed(&store, &boot);
    assert_quiet(&store, &boot);
    host.wake().unwrap();
    until_it_writes(&store, &boot);

    store.cut("host1").unwrap();
    assert!(!store.is_open("host1").unwrap());
    let (tried, before) = (host.tried(), landed(&store, &boot));
    until("vain tries", || host.tried() > tried + 30);
    assert_eq!(landed(&store, &boot), before);
    store.restore("host1").unwrap();
    until_it_writes(&store, &boot);

    host.reset().unwrap();
    let second = host.until_boot(2).unwrap();
    until_it_writes(&store, &second);
    assert_quiet(&store, &boot);
}

#[test]
fn the_bmc_of_a_host_kills_and_starts_it_or_lies_about_it() {
    let store = VmStore::start(&["host1"]).unwrap();
    let host = VmHost::start(&image(), &store, "host1").unwrap();
    let boot = host.until_boot(1).unwrap();
    until_it_writes(&store, &boot);
    let power = |verb| ipmi_power(host.bmc(), verb);
    assert_eq!(power("status"), "Chassis Power is on");

    for (fault, seems) in [(IpmiFault::Lies, "on"), (IpmiFault::Ghost, "off")] {
        host.bmc().set_fault(fault).unwrap();
        assert_eq!(power("off"), "Chassis Power Control: Down/Off");
        assert_eq!(power("status"), format!("Chassis Power is {seems}"));
        assert!(host.is_on());
        until_it_writes(&store, &boot);
    }
    host.bmc().set_fault(IpmiFault::None).unwrap();
    assert_eq!(power("status"), "Chassis Power is on");

    power("off");
    assert!(!host.is_on());
    assert_eq!(power("status"), "Chassis Power is off");
    until_all_has_landed(&store, &boot);
    assert_quiet(&store, &boot);
    power("on");
    let second = host.until_boot(2).unwrap();
    assert_ne!(second, boot);
    until_it_writes(&store, &second);

    // A frozen machine can be switched off, too.
    host.hang().unwrap();
    power("off");
    assert!(!host.is_on());
}

#[test]
fn a_host_that_boots_while_it_is_cut_off_gets_its_disk_when_the_export_opens() {
    let store = VmStore::start(&["host1"]).unwrap();
    store.cut("host1").unwrap();
    let host = VmHost::start(&image(), &store, "host1").unwrap();
    let boot = host.until_boot(1).unwrap();
    until("its answer", || host.address().ask().as_ref() == Some(&boot));
    assert_eq!(host.tried(), 0);
    store.restore("host1").unwrap();
    until_it_writes(&store, &boot);
}

#[test]
fn accepted_writes_of_a_slow_array_land_after_the_hosts_death_and_a_cut_waits_for_them() {
    let store = VmStore::start(&["host1"]).unwrap();
    let host = VmHost::start(&image(), &store, "host1").unwrap();
    let boot = host.until_boot(1).unwrap();
    until_it_writes(&store, &boot);

    store.set_writes_per_s(Some(2)).unwrap();
    until("slowness", || {
        let before = landed(&store, &boot);
        std::thread::sleep(Duration::from_secs(1));
        landed(&store, &boot) - before < 5
    });
    host.switch_off();
    assert!(!host.is_on());
    let before = landed(&store, &boot);
    store.cut("host1").unwrap();
    assert!(landed(&store, &boot) > before, "no write was under way");
    assert_quiet(&store, &boot);
}
