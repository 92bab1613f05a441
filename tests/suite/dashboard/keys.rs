//! A person without a pointer.

use ringfence_api::Role;
use ringfence_tests::{Browser, Key, StackOptions};

use super::{REASON, hosts};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_is_found_and_fenced_with_keys_alone() {
    let stack = hosts(2, StackOptions::default()).await;
    stack.hang("h1").await;
    let browser = Browser::start(stack.client.base()).await;
    browser.open("/dashboard").await;
    browser.until_focused("textbox", "Token").await;
    browser
        .type_text(stack.as_role(Role::Operator).token().unwrap())
        .await;
    browser.press(Key::Enter).await;
    browser.until_says("h1: UNREACHABLE").await;

    browser.tab_to("textbox", "Go to a host").await;
    browser.type_text("h1").await;
    browser.press(Key::Enter).await;
    browser.until_focused("heading", "h1").await;
    browser.part("button", "Fence...").await;
    browser.tab_to("button", "Fence...").await;
    browser.press(Key::Enter).await;
    browser.until_focused("textbox", REASON).await;
    browser.until_says("A fence would begin.").await;
    browser.type_text("it is silent").await;
    // What is dangerous is not sent by Enter.
    browser.press(Key::Enter).await;
    browser.tab_to("button", "Fence h1").await;
    assert!(stack.simulators.may_write("h1"), "Enter has fenced h1");
    browser.press(Key::Space).await;
    browser.until_says("h1: its fence began.").await;
    stack.client.until_fenced("h1").await;
    stack.judge("h1").await;

    browser.press(Key::Escape).await;
    browser.until_without("textbox", REASON).await;
    browser.until_says("FENCED since").await;
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_map_of_hosts_is_walked_with_arrows() {
    let stack = hosts(3, StackOptions::default()).await;
    let browser = super::signed_in(&stack, Role::Reader, "/dashboard").await;
    browser.until_says("All 3 hosts are UP.").await;
    browser.part("listbox", "Segment default, 3 hosts").await;
    browser.tab_to("listbox", "Segment default, 3 hosts").await;
    browser.press(Key::Right).await;
    browser.press(Key::Enter).await;
    browser.until_at("/dashboard/hosts/h2").await;
    browser.part("heading", "h2").await;
    stack.stop().await;
}
