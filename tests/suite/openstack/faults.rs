//! Clouds that are away, too old, or let us in no more.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ringfence_backends::BackendError;
use ringfence_backends::openstack::{Cloud as Backend, CloudSettings};
use ringfence_engine::ObserverConfig;
use ringfence_lab::{Api, Call, Cloud, NovaApi, NovaApiOptions, User};
use ringfence_tests::clouds_file::{Entry, write};
use ringfence_tests::{FakeNova, Ground, Site, Stack, StackOptions, eventually, power_plan};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::block_in_place;
use uuid::Uuid;

use super::plant::{CLOUD, cloud};

const PATIENCE: Duration = Duration::from_secs(90);

fn backend(file: &Path, timeout_s: u64) -> Arc<Backend> {
    Arc::new(Backend::new(CloudSettings {
        name: CLOUD.to_owned(),
        file: Some(file.to_owned()),
        timeout: Duration::from_secs(timeout_s),
    }))
}

/// What is said when this entry is used.
async fn complaint(entry: Entry) -> BackendError {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clouds.yaml");
    write(&file, &[entry]);
    backend(&file, 2).services().await.unwrap_err()
}

/// A Ringfence that watches one host by what the file says.
async fn watching(file: &Path, host: &str) -> Stack {
    let options = StackOptions {
        hosts: 0,
        workers: 0,
        clouds: vec![backend(file, 5)],
        observer: ObserverConfig {
            every: Duration::from_secs(1),
            down_after: chrono::TimeDelta::seconds(8),
            ..ObserverConfig::default()
        },
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(Ground::Distributed).await, options).await;
    let body = json!({ "name": host, "backend": "nova", "cloud": CLOUD });
    stack.client.post("/hosts", body).await.ok(201);
    until_seen(&stack, host, "UP").await;
    stack
}

async fn until_seen(stack: &Stack, host: &str, state: &str) -> Value {
    let is_so = |host: &Value| host["failure_state"] == state;
    stack
        .client
        .until_within(&format!("/hosts/{host}"), PATIENCE, is_so)
        .await
}

/// Nothing has begun, and nothing was concluded but that nobody could see.
async fn assert_only_out_of_sight(stack: &Stack, host: &str) {
    let operations = stack
        .client
        .get(&format!("/operations?host={host}"))
        .await
        .ok(200);
    assert_eq!(operations["operations"], json!([]));
    let events = stack.client.get(&format!("/events?host={host}")).await.ok(200);
    let seen = events["events"].as_array().unwrap().iter();
    let states: Vec<&str> = seen.filter_map(|event| event["data"]["to"].as_str()).collect();
    assert_eq!(states, ["UP", "UNKNOWN", "UP"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_cannot_be_asked_and_why_is_in_the_words_of_the_error() {
    let cloud = cloud();
    let entry = || Entry::new(CLOUD, &cloud);
    let said = complaint(entry().password("hushhush")).await;
    assert!(
        matches!(
            said,
            BackendError::Denied {
                service: "keystone",
                ..
            }
        ),
        "{said}"
    );
    assert!(!said.to_string().contains("hushhush"), "{said}");
    let said = complaint(entry().user(User::FencingReader.name())).await;
    assert!(
        matches!(said, BackendError::Denied { service: "nova", .. }),
        "{said}"
    );
    let said = complaint(entry().keystone_at("127.0.0.1:1")).await;
    assert!(
        matches!(
            said,
            BackendError::Away {
                service: "keystone",
                ..
            }
        ),
        "{said}"
    );
    let said = complaint(entry().nova_at("http://127.0.0.1:1/v2.1")).await;
    assert!(
        matches!(said, BackendError::Away { service: "nova", .. }),
        "{said}"
    );
    let hangs = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = hangs.local_addr().unwrap().to_string();
    let said = complaint(entry().keystone_at(&address)).await;
    assert!(
        matches!(
            said,
            BackendError::Late {
                service: "keystone",
                ..
            }
        ),
        "{said}"
    );
    let said = complaint(entry().nova_at(&format!("http://{address}/v2.1"))).await;
    assert!(
        matches!(said, BackendError::Late { service: "nova", .. }),
        "{said}"
    );
}

/// No Nova of today is so old: only its version document is made up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nova_that_is_too_old_or_too_new_is_told_with_both_sides_versions() {
    let cloud = cloud();
    for (oldest, newest) in [("2.1", "2.67"), ("2.95", "2.120")] {
        let nova = FakeNova::start(&[]).with_versions(oldest, newest);
        let said = complaint(Entry::new(CLOUD, &cloud).nova_at(&nova.url())).await;
        assert!(matches!(said, BackendError::Version { .. }), "{said}");
        let said = said.to_string();
        assert!(
            said.contains(&format!("{oldest} to {newest}")) && said.contains("2.68 to 2.94"),
            "{said}"
        );
    }
    let nova = FakeNova::start(&["c1"]).with_versions("2.1", "2.70");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clouds.yaml");
    write(&file, &[Entry::new(CLOUD, &cloud).nova_at(&nova.url())]);
    let backend = backend(&file, 5);
    assert_eq!(backend.services().await.unwrap().len(), 2);
    assert_eq!(nova.asked_with(), "compute 2.70");
    assert_eq!(backend.nova_versions().await.unwrap().used, "2.70");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_novas_api_is_away_its_hosts_are_unknown_and_nothing_begins() {
    let cloud = cloud();
    let _computes = block_in_place(|| cloud.computes(["away-a"]).unwrap());
    let mut api = block_in_place(|| cloud.nova_api(NovaApiOptions::default()).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clouds.yaml");
    write(&file, &[Entry::new(CLOUD, &cloud).nova_at(&api.url())]);
    let stack = watching(&file, "away-a").await;

    api.kill();
    until_seen(&stack, "away-a", "UNKNOWN").await;
    assert_eq!(stack.client.gates("away-a").await["evacuate"]["allowed"], false);
    // Longer than a host may be silent.
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(stack.client.host("away-a").await["failure_state"], "UNKNOWN");
    block_in_place(|| api.start_again().unwrap());
    until_seen(&stack, "away-a", "UP").await;
    assert_only_out_of_sight(&stack, "away-a").await;
    stack.stop().await;
}

/// A user of this story's own, whose password can be changed: its name and its id.
fn make_user(cloud: &Cloud, password: &str) -> (String, String) {
    let name = format!("story-{}", Uuid::new_v4().simple());
    let body = json!({ "user": { "name": name, "domain_id": "default", "password": password } });
    let made = keystone(cloud, "POST", "/users", Some(body));
    let id = made["user"]["id"].as_str().unwrap().to_owned();
    let roles = keystone(cloud, "GET", "/roles?name=admin", None);
    let role = roles["roles"][0]["id"].as_str().unwrap().to_owned();
    let project = cloud.project(User::Fencing).unwrap();
    keystone(
        cloud,
        "PUT",
        &format!("/projects/{project}/users/{id}/roles/{role}"),
        None,
    );
    (name, id)
}

/// Nova believes for some minutes what Keystone has said of a token.
fn forget_tokens(api: &mut NovaApi) {
    block_in_place(|| {
        api.kill();
        api.start_again().unwrap();
    });
}

fn keystone(cloud: &Cloud, method: &'static str, path: &str, body: Option<Value>) -> Value {
    let call = Call {
        base: Some(cloud.description().auth_url.clone()),
        body,
        ..Call::new(method, Api::Identity, path)
    };
    cloud.demand(&call).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_that_is_changed_ends_the_token_and_the_new_one_needs_no_restart() {
    let cloud = cloud();
    let _computes = block_in_place(|| cloud.computes(["pass-a"]).unwrap());
    let mut api = block_in_place(|| cloud.nova_api(NovaApiOptions::default()).unwrap());
    let (name, user) = block_in_place(|| make_user(&cloud, "first"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clouds.yaml");
    let entry = Entry::new(CLOUD, &cloud).user(&name).nova_at(&api.url());
    write(&file, &[entry.clone().password("first")]);
    let stack = watching(&file, "pass-a").await;

    // All tokens of the user end with its password.
    let change = json!({ "user": { "password": "second" } });
    block_in_place(|| keystone(&cloud, "PATCH", &format!("/users/{user}"), Some(change)));
    forget_tokens(&mut api);
    until_seen(&stack, "pass-a", "UNKNOWN").await;
    write(&file, &[entry.password("second")]);
    until_seen(&stack, "pass-a", "UP").await;
    assert_only_out_of_sight(&stack, "pass-a").await;
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_revoked_is_replaced_and_nobody_notices() {
    let cloud = cloud();
    let mut api = block_in_place(|| cloud.nova_api(NovaApiOptions::default()).unwrap());
    let (name, user) = block_in_place(|| make_user(&cloud, "secret"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clouds.yaml");
    let entry = Entry::new(CLOUD, &cloud)
        .user(&name)
        .password("secret")
        .nova_at(&api.url());
    write(&file, &[entry]);
    let backend = backend(&file, 60);
    assert!(!backend.services().await.unwrap().is_empty());
    // A user that is disabled and enabled again has no tokens left.
    for enabled in [false, true] {
        let change = json!({ "user": { "enabled": enabled } });
        block_in_place(|| keystone(&cloud, "PATCH", &format!("/users/{user}"), Some(change)));
    }
    forget_tokens(&mut api);
    assert!(!backend.services().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn placement_itself_is_asked_whether_a_host_is_kept_away() {
    let cloud = cloud();
    let _computes = block_in_place(|| cloud.computes(["kept-a"]).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clouds.yaml");
    write(&file, &[Entry::new(CLOUD, &cloud)]);
    let backend = backend(&file, 60);
    assert!(!backend.is_kept_away("kept-a").await.unwrap());
    block_in_place(|| cloud.disable("kept-a", "for a story").unwrap());
    eventually(async || backend.is_kept_away("kept-a").await.unwrap()).await;
    block_in_place(|| cloud.enable("kept-a").unwrap());
    eventually(async || !backend.is_kept_away("kept-a").await.unwrap()).await;
}

/// A host of the cloud with simulated power, which Nova calls so, and is FENCED.
async fn fenced(folder: &tempfile::TempDir, entry: Entry, known_as: &str) -> Stack {
    let file = folder.path().join("clouds.yaml");
    write(&file, &[entry]);
    let options = StackOptions {
        hosts: 1,
        clouds: vec![backend(&file, 60)],
        observer: ObserverConfig {
            every: Duration::from_secs(3600),
            ..ObserverConfig::default()
        },
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(Ground::Standalone).await, options).await;
    stack.plan(power_plan()).await;
    let of_cloud = json!({ "backend": "nova", "cloud": CLOUD, "known_as": known_as });
    stack.client.patch("/hosts/h1", of_cloud).await.ok(200);
    stack.hang("h1").await;
    stack.client.fence("h1").await;
    stack.client.until_fenced("h1").await;
    stack
}

/// What is said of the first task of an evacuation that fails, by any of its attempts.
async fn until_told(stack: &Stack, words: &str) {
    let why = json!({ "reason": "they are missed" });
    let operation = stack.client.post("/hosts/h1/evacuate", why).await.ok(202);
    let path = format!("/operations/{}", operation["id"].as_str().unwrap());
    let is_told = |operation: &Value| operation["stages"].to_string().contains(words);
    stack.client.until_within(&path, PATIENCE, is_told).await;
    stack
        .client
        .post(&format!("{path}/cancel"), json!({ "reason": "enough" }))
        .await
        .ok(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_evacuation_that_nova_refuses_says_why() {
    let cloud = cloud();
    let folder = tempfile::tempdir().unwrap();
    let unknown = fenced(&folder, Entry::new(CLOUD, &cloud), "nosuch").await;
    until_told(&unknown, "knows no host nosuch").await;
    unknown.stop().await;

    let reader = Entry::new(CLOUD, &cloud).user(User::FencingReader.name());
    let powerless = fenced(&folder, reader, "nosuch").await;
    until_told(&powerless, "refuses the credentials").await;
    powerless.stop().await;
}
