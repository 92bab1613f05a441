//! Every view, in light and dark and on a phone: it can be used by every person, fits, and looks as it is known to.

use ringfence_api::Role;
use ringfence_core::Resource;
use ringfence_simulators::{Fault, FaultKind};
use ringfence_tests::{Browser, Scheme, Stack, StackOptions};
use serde_json::json;

use super::{hosts, pictures, signed_in};

/// What differs from run to run by its place and not only by its words.
const BLANK: [&str; 3] = [".timeline", "[role=img]", "progress"];

/// How a view is looked at.
#[derive(Clone, Copy)]
enum Look {
    Light,
    Dark,
    Phone,
}

impl Look {
    const ALL: [Self; 3] = [Self::Light, Self::Dark, Self::Phone];

    fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
            Self::Phone => "phone",
        }
    }

    async fn of(self, browser: &Browser) {
        let scheme = match self {
            Self::Light | Self::Phone => Scheme::Light,
            Self::Dark => Scheme::Dark,
        };
        browser.prefer(scheme).await;
        match self {
            Self::Light | Self::Dark => browser.size(1280, 900).await,
            Self::Phone => browser.phone().await,
        }
    }
}

/// A view: the name of its pictures, its place, and words that it shows when it is complete.
struct View {
    name: &'static str,
    place: String,
    complete: &'static str,
}

fn view(name: &'static str, place: impl Into<String>, complete: &'static str) -> View {
    View {
        name,
        place: place.into(),
        complete,
    }
}

/// A host that is FENCED, one whose fence waits for a person, and four that are UP.
async fn site() -> (Stack, String) {
    let options = StackOptions {
        attempt_timeout_s: 3,
        ..StackOptions::default()
    };
    let stack = hosts(6, options).await;
    stack.set_fault("h2", Resource::Power, Some(Fault::forever(FaultKind::Refuse)));
    for host in ["h1", "h2"] {
        stack.hang(host).await;
    }
    stack.client.fence("h1").await;
    stack.client.until_fenced("h1").await;
    let stuck = stack.client.fence("h2").await;
    stack.client.until_settled(&stuck).await;
    let receiver = json!({ "name": "pager", "url": "http://127.0.0.1:9/hook" });
    stack.client.post("/subscriptions", receiver).await.ok(201);
    let id = stuck["id"].as_str().unwrap().to_owned();
    (stack, id)
}

/// All that is wrong with a view in one look.
async fn faults(browser: &Browser, view: &View, look: Look) -> Vec<String> {
    let name = format!("{}-{}", view.name, look.name());
    look.of(browser).await;
    browser.open(&view.place).await;
    browser.until_says(view.complete).await;
    browser.until_settled().await;
    let mut found = browser.barriers().await;
    found.extend(browser.too_wide().await);
    found.extend(browser.foreign().await);
    let complaints = browser.complaints().await;
    found.extend(complaints.iter().map(|said| format!("{said:?}")));
    let picture = browser.still_picture(&BLANK).await;
    found.extend(pictures::fault(&name, &picture));
    found
        .into_iter()
        .map(|fault| format!("{name}: {fault}"))
        .collect()
}

async fn assert_faultless(browser: &Browser, views: &[View]) {
    let mut found = Vec::new();
    for view in views {
        for look in Look::ALL {
            found.extend(faults(browser, view, look).await);
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_view_can_be_used_by_all_fits_and_looks_as_it_is_known_to() {
    let (stack, stuck) = site().await;
    let browser = signed_in(&stack, Role::Admin, "/dashboard").await;
    let views = [
        view("overview", "/dashboard", "1 thing needs you."),
        view("host", "/dashboard/hosts/h1", "FENCED since"),
        view("host-up", "/dashboard/hosts/h3", "What a fence would do now"),
        view("operation", format!("/dashboard/operations/{stuck}"), "Over time"),
        view("hosts", "/dashboard/hosts", "h6"),
        view("operations", "/dashboard/operations", "h2 fence"),
        view("methods", "/dashboard/methods", "simulated"),
        view("method", "/dashboard/methods/power", "simulated"),
        view("plans", "/dashboard/plans", "power.off"),
        view("plan", "/dashboard/plans/default", "power.off"),
        view("segments", "/dashboard/segments", "default"),
        view("segment", "/dashboard/segments/default", "percent"),
        view("subscriptions", "/dashboard/subscriptions", "pager"),
        view("subscription", "/dashboard/subscriptions/pager", "127.0.0.1:9"),
        view("audit", "/dashboard/audit", "operation.started"),
        view("events", "/dashboard/events", "host.fenced"),
        view("sessions", "/dashboard/sessions", "127.0.0.1"),
        view(
            "nothing",
            "/dashboard/nothing",
            "There is nothing at this address.",
        ),
    ];
    assert_faultless(&browser, &views).await;
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sign_in_can_be_used_by_all_fits_and_looks_as_it_is_known_to() {
    let stack = hosts(1, StackOptions::default()).await;
    let browser = Browser::start(stack.client.base()).await;
    let views = [view("sign-in", "/dashboard", "Sign in to Ringfence")];
    assert_faultless(&browser, &views).await;
    stack.stop().await;
}
