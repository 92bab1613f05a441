//! Two operators: one acts on what the other has changed meanwhile.

use ringfence_api::Role;
use ringfence_tests::StackOptions;

use super::{REASON, hosts, signed_in};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_action_on_what_has_changed_meanwhile_is_not_done_and_says_so() {
    let stack = hosts(1, StackOptions::default()).await;
    stack.hang("h1").await;
    let browser = signed_in(&stack, Role::Operator, "/dashboard/hosts/h1").await;
    browser.click("button", "Fence...").await;
    browser.until_says("A fence would begin.").await;
    browser.fill("textbox", REASON, "it is silent").await;

    // The other operator.
    stack.client.fence("h1").await;
    let fenced = stack.client.until_fenced("h1").await;

    browser.click("button", "Fence h1").await;
    browser.until_says("h1 has changed meanwhile").await;
    browser.until_says("fencing state was UNFENCED, is FENCED").await;
    let now = stack.client.host("h1").await;
    assert_eq!(now["generation"], fenced["generation"]);
    let list = stack.client.get("/operations?host=h1").await.ok(200);
    assert_eq!(list["operations"].as_array().unwrap().len(), 1, "{list}");

    browser.click("button", "Look again").await;
    browser.until_says("FENCED already.").await;
    stack.stop().await;
}
