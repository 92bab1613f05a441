//! Signing in and out.

use ringfence_api::Role;
use ringfence_tests::{Browser, Stack, StackOptions};
use serde_json::{Value, json};

use super::{hosts, sign_in, signed_in};

/// Ends the browser sessions of a role's token, as their owner would from elsewhere.
async fn end_sessions(stack: &Stack, role: Role) {
    let client = stack.as_role(role);
    let listed = client.get("/sessions").await.ok(200);
    let listed = listed["sessions"].as_array().unwrap();
    assert!(!listed.is_empty());
    for session in listed {
        let path = format!("/sessions/{}", session["id"].as_str().unwrap());
        client.delete(&path).await.ok(204);
    }
}

/// All that a script of the page could read or send on.
async fn within_reach_of_scripts(browser: &Browser) -> Value {
    let script =
        "return [document.cookie, location.href, {...localStorage}, {...sessionStorage}, history.state]";
    browser.run(script, Vec::new()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ends_brings_the_sign_in_and_then_the_view_that_was_shown() {
    let stack = hosts(1, StackOptions::default()).await;
    let place = "/dashboard/hosts/h1";
    let browser = signed_in(&stack, Role::Reader, place).await;
    browser.part("heading", "h1").await;

    end_sessions(&stack, Role::Reader).await;
    browser.until_says("Your session has ended. Sign in again.").await;
    browser.until_without("heading", "h1").await;

    sign_in(&browser, &stack.as_role(Role::Reader)).await;
    browser.part("heading", "h1").await;
    assert_eq!(browser.place().await, place);
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_refused_or_becomes_a_session_that_no_script_can_read() {
    let stack = hosts(1, StackOptions::default()).await;
    let browser = Browser::start(stack.client.base()).await;
    browser.open("/dashboard").await;
    browser.fill("textbox", "Token", "not-a-token").await;
    browser.click("button", "Sign in").await;
    browser
        .until("the page says that the token is refused".to_owned(), async || {
            let words = browser.words().await.to_lowercase();
            words.contains("token is").then_some(())
        })
        .await;

    let client = stack.as_role(Role::Admin);
    sign_in(&browser, &client).await;
    browser.part("link", "Overview").await;
    let reachable = within_reach_of_scripts(&browser).await;
    assert_eq!(reachable[0], json!(""));
    assert!(
        !reachable.to_string().contains(client.token().unwrap()),
        "{reachable}"
    );

    browser.reload().await;
    browser.part("link", "Overview").await;
    browser.click("button", "Sign out").await;
    browser.part("textbox", "Token").await;
    let sessions = client.get("/sessions").await.ok(200);
    assert_eq!(sessions["sessions"], json!([]));
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_sees_no_button_that_acts() {
    let stack = hosts(1, StackOptions::default()).await;
    stack.hang("h1").await;
    let browser = signed_in(&stack, Role::Reader, "/dashboard").await;
    browser.until_says("h1: UNREACHABLE").await;
    for place in ["/dashboard", "/dashboard/hosts/h1", "/dashboard/hosts"] {
        browser.open(place).await;
        browser.until_says("UNREACHABLE").await;
        let names = browser.names("button").await;
        let acting: Vec<_> = names.iter().filter(|name| name.ends_with("...")).collect();
        assert!(acting.is_empty(), "{place}: {acting:?}");
    }
    stack.stop().await;
}
