//! The operator's page: its files, and what a person does with it in a real browser.

mod demonstration;
mod form;
mod keys;
mod look;
mod meanwhile;
mod pictures;
mod restart;
mod sessions;
mod silent_bmc;
mod storm;

use ringfence_api::Role;
use ringfence_tests::{Browser, Client, Ground, Key, Site, Stack, StackOptions, power_plan};

/// The label of every dialog's field for a reason.
const REASON: &str = "Reason (goes on record)";

/// So many hosts that are seen UP, with a plan that takes their power.
async fn hosts(count: usize, options: StackOptions) -> Stack {
    let options = StackOptions {
        hosts: count,
        ..options
    };
    let stack = Stack::start_with(Site::new(Ground::Standalone).await, options).await;
    stack.plan(power_plan()).await;
    stack.observe().await;
    stack
}

/// A browser in which a person of this role has signed in, at this place.
async fn signed_in(stack: &Stack, role: Role, place: &str) -> Browser {
    let browser = Browser::start(stack.client.base()).await;
    browser.open(place).await;
    sign_in(&browser, &stack.as_role(role)).await;
    browser
}

/// Signs in with the client's token.
async fn sign_in(browser: &Browser, client: &Client) {
    browser.fill("textbox", "Token", client.token().unwrap()).await;
    browser.press(Key::Enter).await;
    browser.until_without("textbox", "Token").await;
}
