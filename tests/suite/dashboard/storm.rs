//! Many hosts fall silent at once: the storm brake holds their fences, and a person releases them.

use ringfence_api::Role;
use ringfence_tests::StackOptions;
use serde_json::json;

use super::{REASON, hosts, signed_in};

const SILENT: [&str; 6] = ["h1", "h2", "h3", "h4", "h5", "h6"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_that_the_brake_holds_is_released_from_the_page() {
    let stack = hosts(SILENT.len(), StackOptions::default()).await;
    let fencing = json!({ "automatic": true, "after_s": 0, "at_most": 2, "at_most_percent": 100 });
    let policy = json!({ "fencing": fencing });
    stack.client.set_default_policy(policy).await.ok(200);
    let browser = signed_in(&stack, Role::Operator, "/dashboard").await;
    for host in ["h1", "h2"] {
        stack.hang(host).await;
        stack.client.until_fenced(host).await;
    }
    for host in ["h3", "h4", "h5", "h6"] {
        stack.hang(host).await;
    }
    browser
        .until_says("Storm brake: 4 fences of default held (")
        .await;
    assert!(
        stack.simulators.may_write("h3"),
        "h3 is fenced although the brake holds"
    );

    browser.click("button", "Release...").await;
    browser
        .fill("textbox", REASON, "the rack has lost its power")
        .await;
    let go_on = "Release 4 operations";
    assert!(
        browser.part("button", go_on).await.is_disabled,
        "the number is not typed yet"
    );
    browser
        .fill("textbox", "Type the number of targets, 4", "4")
        .await;
    browser.click("button", go_on).await;
    browser.until_says("4 of 4 accepted.").await;
    browser.click("button", "Close").await;
    for host in SILENT {
        stack.client.until_fenced(host).await;
        stack.judge(host).await;
    }
    browser.until_says("Nothing needs you.").await;
    stack.stop().await;
}
