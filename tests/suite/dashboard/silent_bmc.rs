//! A host falls silent, and so does its BMC: a person has to make certain that it is off.

use ringfence_api::Role;
use ringfence_core::Resource;
use ringfence_simulators::{Condition, Fault, FaultKind};
use ringfence_tests::{Browser, Stack, StackOptions, eventually};
use serde_json::json;

use super::{REASON, hosts, signed_in};

/// A host whose BMC does not answer, in a segment that fences by itself.
async fn with_a_silent_bmc() -> Stack {
    let options = StackOptions {
        attempt_timeout_s: 3,
        ..StackOptions::default()
    };
    let stack = hosts(2, options).await;
    let policy = json!({ "fencing": { "automatic": true, "after_s": 0, "at_most_percent": 100 } });
    stack.client.set_default_policy(policy).await.ok(200);
    stack.set_fault("h1", Resource::Power, Some(Fault::forever(FaultKind::Silent)));
    stack
}

/// What the page says needs a person is done: the plugs are pulled, and that is confirmed under the host's name.
async fn confirm_by_hand(stack: &Stack, browser: &Browser) {
    stack.simulators.set_condition("h1", Condition::Crashed).unwrap();
    browser.click("button", "Confirm by hand...").await;
    browser.until_says("Your word counts for generation 1.").await;
    browser.fill("textbox", REASON, "its plugs are pulled").await;
    let word = "It is off, and stays off";
    assert!(
        browser.part("button", word).await.is_disabled,
        "the name is not typed yet"
    );
    browser.fill("textbox", "Type h1 to confirm", "h1").await;
    browser.click("button", word).await;
    browser.until_says("h1 is FENCED.").await;
    browser.click("button", "Close").await;
}

/// The host runs again and is taken back.
async fn rejoin(stack: &Stack, browser: &Browser) {
    stack.set_fault("h1", Resource::Power, None);
    stack.simulators.set_condition("h1", Condition::Running).unwrap();
    stack.observe().await;
    browser.until_says("h1: FENCED, and UP again").await;
    browser.click("button", "Rejoin...").await;
    browser.fill("textbox", REASON, "repaired").await;
    browser.click("button", "Rejoin h1").await;
    browser.until_says("h1: its rejoin began.").await;
    browser.click("button", "Close").await;
    eventually(async || {
        stack.observe().await;
        stack.client.host("h1").await["fencing_state"] == "UNFENCED"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_with_a_silent_bmc_is_confirmed_by_hand_and_taken_back() {
    let stack = with_a_silent_bmc().await;
    let browser = signed_in(&stack, Role::Operator, "/dashboard").await;
    browser.until_says("Nothing needs you. All 2 hosts are UP.").await;

    stack.hang("h1").await;
    browser.until_says("h1: its fence waits for you").await;
    browser.until_says("1 thing needs you.").await;
    browser
        .until_says("make certain by hand that the host is off and stays off, then confirm it")
        .await;

    confirm_by_hand(&stack, &browser).await;
    stack.client.until_fenced("h1").await;
    stack.judge("h1").await;
    let confirmed = stack.audit("h1").await;
    let by: Vec<_> = confirmed.iter().map(|entry| entry.actor.as_str()).collect();
    assert!(by.contains(&"a-operator"), "{by:?}");

    rejoin(&stack, &browser).await;
    browser.until_says("Nothing needs you. All 2 hosts are UP.").await;
    let complaints = browser.complaints().await;
    assert!(complaints.is_empty(), "{complaints:?}");
    stack.stop().await;
}
