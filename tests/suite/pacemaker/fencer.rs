//! Pacemaker's own fencer calls the agent. There is one fencer per machine, so one of these tests runs at a time.

use std::sync::Arc;

use ringfence_lab::{Fencer, IpmiBmc, IpmiFault, LabError};
use ringfence_tests::{eventually, tell};
use serde_json::json;

use super::{Place, agent, proofs};

/// The fencer, and the name under which it has our agent.
struct Pacemaker {
    fencer: Arc<Fencer>,
    agent: String,
}

impl Pacemaker {
    /// `None` for a user who may not run the fencer.
    async fn start() -> Option<Self> {
        if !Fencer::is_allowed() {
            tell("SKIPPED: only root runs Pacemaker's fencer");
            return None;
        }
        let started = tokio::task::spawn_blocking(|| {
            let mut fencer = Fencer::start().unwrap();
            let agent = fencer.add_agent(&agent().canonicalize().unwrap()).unwrap();
            (Arc::new(fencer), agent)
        });
        let (fencer, agent) = started.await.unwrap();
        Some(Self { fencer, agent })
    }

    /// Registers a device of our agent for one node.
    fn ringfence(&self, place: &Place, device: &str, node: &str, more: &[(&str, &str)]) {
        let own = [
            ("pcmk_host_list", node),
            ("pcmk_reboot_action", "off"),
            ("pcmk_off_timeout", "50"),
            ("pcmk_off_retries", "1"),
        ];
        let parameters = place.parameters(&[&own[..], more].concat());
        let options: Vec<_> = parameters
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        self.fencer.register(device, &self.agent, &options).unwrap();
    }

    /// Registers Pacemaker's own power device for one node.
    fn power(&self, device: &str, node: &str, bmc: &IpmiBmc) {
        let port = bmc.port().to_string();
        let options = [
            ("ip", "127.0.0.1"),
            ("ipport", &port),
            ("username", IpmiBmc::USER),
            ("password", IpmiBmc::PASSWORD),
            ("lanplus", "1"),
            ("cipher", "3"),
            // Without this, an agent that Pacemaker calls waits for as long as Pacemaker's own deadline.
            ("disable_timeout", "false"),
            ("power_timeout", "5"),
            ("pcmk_host_list", node),
            ("pcmk_reboot_action", "off"),
            ("pcmk_off_retries", "1"),
        ];
        self.fencer.register(device, "fence_ipmilan", &options).unwrap();
    }

    /// Runs `stonith_admin` with a deadline of a minute.
    async fn admin(&self, verb: &'static str, node: &'static str) -> Result<String, LabError> {
        let fencer = Arc::clone(&self.fencer);
        tokio::task::spawn_blocking(move || fencer.admin(&[verb, node, "-t", "60"]))
            .await
            .unwrap()
    }

    async fn fence(&self, node: &'static str) -> Result<String, LabError> {
        self.admin("--fence", node).await
    }

    async fn stop(self) {
        tokio::task::spawn_blocking(move || drop(self)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_pacemaker_switched_off_is_fenced_by_pacemakers_confirmation() {
    let Some(pacemaker) = Pacemaker::start().await else {
        return;
    };
    let place = Place::start().await;
    let bmc = place.host_with_bmc("c1", "UNREACHABLE").await;
    pacemaker.power("power-c1", "c1", &bmc);
    pacemaker.ringfence(
        &place,
        "ringfence-c1",
        "c1",
        &[("mode", "confirm"), ("timeout", "8")],
    );
    pacemaker
        .fencer
        .level("c1", 1, &["power-c1", "ringfence-c1"])
        .unwrap();
    let metadata = pacemaker.fencer.admin(&["-M", "-a", &pacemaker.agent]).unwrap();
    assert!(metadata.contains("<parameter name=\"mode\""), "{metadata}");

    // The BMC reports success and does not switch off: the host has power, and nothing is confirmed.
    bmc.set_fault(IpmiFault::Lies).unwrap();
    pacemaker.fence("c1").await.unwrap_err();
    assert!(bmc.is_powered().unwrap());
    assert!(!place.is_fenced("c1").await);
    bmc.set_fault(IpmiFault::None).unwrap();

    // The host is seen UP: Pacemaker switched off another machine.
    place.client.seen("c1", "UP").await.ok(200);
    pacemaker.fence("c1").await.unwrap_err();
    assert!(!bmc.is_powered().unwrap());
    let host = place.client.host("c1").await;
    assert_eq!(
        (&host["fencing_state"], &host["generation"]),
        (&json!("UNFENCED"), &json!(0))
    );
    let log = pacemaker.fencer.log();
    assert!(log.contains("the host is seen UP (by test)"), "{log}");

    place.client.seen("c1", "UNREACHABLE").await.ok(200);
    bmc.set_powered(true).unwrap();
    pacemaker.fence("c1").await.unwrap();
    assert!(!bmc.is_powered().unwrap());
    let fenced = place.client.host("c1").await;
    assert_eq!(fenced["fencing_state"], "FENCED");
    assert_eq!(proofs(&fenced), [("operator".to_owned(), "pacemaker".to_owned())]);

    // A second off changes nothing, and a reboot is carried out as an off.
    for verb in ["--fence", "--reboot"] {
        pacemaker.admin(verb, "c1").await.unwrap();
        let host = place.client.host("c1").await;
        assert_eq!(
            (&host["generation"], &host["operation"]),
            (&fenced["generation"], &json!(null))
        );
        assert!(place.is_fenced("c1").await && !bmc.is_powered().unwrap());
    }
    pacemaker.stop().await;
}

/// Pacemaker finds a host missing long before its cloud does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_confirmation_waits_until_the_host_is_no_longer_seen_up() {
    let Some(pacemaker) = Pacemaker::start().await else {
        return;
    };
    let place = Place::start().await;
    let bmc = place.host_with_bmc("c1", "UP").await;
    pacemaker.power("power-c1", "c1", &bmc);
    pacemaker.ringfence(
        &place,
        "ringfence-c1",
        "c1",
        &[("mode", "confirm"), ("timeout", "45")],
    );
    pacemaker
        .fencer
        .level("c1", 1, &["power-c1", "ringfence-c1"])
        .unwrap();
    let fencer = Arc::clone(&pacemaker.fencer);
    let fencing = tokio::task::spawn_blocking(move || fencer.admin(&["--fence", "c1", "-t", "90"]));
    eventually(async || place.has_refused_a_confirmation()).await;
    assert!(!bmc.is_powered().unwrap() && !place.is_fenced("c1").await);
    place.client.seen("c1", "UNREACHABLE").await.ok(200);
    fencing.await.unwrap().unwrap();
    assert!(place.is_fenced("c1").await);
    pacemaker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pacemaker_gets_success_once_ringfence_has_proven_the_fence_and_can_unfence_the_host() {
    let Some(pacemaker) = Pacemaker::start().await else {
        return;
    };
    let place = Place::start().await;
    let bmc = place.host_with_bmc("f1", "UNREACHABLE").await;
    // The device has no list of hosts: the agent names them.
    let parameters = place.parameters(&[
        ("timeout", "40"),
        ("pcmk_off_timeout", "50"),
        ("pcmk_off_retries", "1"),
    ]);
    let options: Vec<_> = parameters
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    pacemaker
        .fencer
        .register("ringfence", &pacemaker.agent, &options)
        .unwrap();
    let targets = pacemaker.fencer.admin(&["--list-targets", "ringfence"]).unwrap();
    assert!(targets.contains("f1"), "{targets}");
    // A cluster monitors the device with this query.
    pacemaker.fencer.admin(&["--query", "ringfence"]).unwrap();

    // The host's BMC is silent, and nothing is proven.
    bmc.silence().unwrap();
    pacemaker.fence("f1").await.unwrap_err();
    let host = place.client.host("f1").await;
    assert_eq!(host["fencing_state"], "UNFENCED");
    assert_eq!(host["operation"]["status"], "needs_operator");
    let log = pacemaker.fencer.log();
    assert!(log.contains("needs an operator"), "{log}");

    // The BMC answers again, and Ringfence needs no operator.
    bmc.wake().unwrap();
    pacemaker.fence("f1").await.unwrap();
    assert!(!bmc.is_powered().unwrap());
    let host = place.client.host("f1").await;
    assert_eq!(host["fencing_state"], "FENCED");
    assert_eq!(proofs(&host), [("power.off".to_owned(), "power".to_owned())]);

    pacemaker.admin("--unfence", "f1").await.unwrap();
    assert_eq!(place.client.host("f1").await["operation"]["kind"], "rejoin");
    assert!(place.is_fenced("f1").await);
    eventually(async || bmc.is_powered().unwrap()).await;
    // Reports count once the proof has settled: an earlier one may be from before the switch took effect.
    let _monitor = place.client.keep_seeing("f1");
    place
        .client
        .until("/hosts/f1", |host| host["fencing_state"] == "UNFENCED")
        .await;
    pacemaker.stop().await;
}

/// Without a topology, Pacemaker uses any device that can fence a node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_without_a_power_device_before_the_confirmation_is_not_confirmed() {
    let Some(pacemaker) = Pacemaker::start().await else {
        return;
    };
    let place = Place::start().await;
    let bmc = place.host_with_bmc("c1", "UNREACHABLE").await;
    let confirm = [("mode", "confirm"), ("timeout", "8")];
    pacemaker.ringfence(&place, "ringfence-c1", "c1", &confirm);
    let refused = async |why: &str| {
        pacemaker.fence("c1").await.unwrap_err();
        assert!(bmc.is_powered().unwrap() && !place.is_fenced("c1").await, "{why}");
    };
    refused("the device has no level").await;
    let log = pacemaker.fencer.log();
    assert!(log.contains("no power device has switched c1 off"), "{log}");

    pacemaker.fencer.level("c1", 1, &["ringfence-c1"]).unwrap();
    refused("no power device is in the level").await;

    // The second level is tried after the first has failed: a right second level does not excuse the first.
    pacemaker.power("power-c1", "c1", &bmc);
    bmc.set_fault(IpmiFault::Lies).unwrap();
    pacemaker
        .fencer
        .level("c1", 2, &["power-c1", "ringfence-c1"])
        .unwrap();
    refused("no power device is in the first level").await;
    assert_eq!(place.client.host("c1").await["generation"], 0);
    pacemaker.stop().await;
}
