//! Clouds that are away, too old, or refuse Ringfence's credentials.

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

/// The error of a call with this entry.
async fn complaint(entry: Entry) -> BackendError {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clouds.yaml");
    write(&file, &[entry]);
    backend(&file, 2).services().await.unwrap_err()
}

/// A stack that watches one host by this `clouds.yaml`.
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

/// Asserts that the host is UNKNOWN and that no operation has begun.
async fn assert_unknown_without_operations(stack: &Stack, host: &str) {
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
async fn an_error_names_the_service_that_does_not_answer_and_the_reason() {
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

/// No present Nova is so old: only the version document is simulated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_error_of_a_nova_too_old_or_too_new_names_both_sides_versions() {
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
async fn while_novas_api_is_away_its_hosts_are_unknown_and_no_operation_begins() {
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
    // Longer than the time after which a silent host is UNREACHABLE.
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(stack.client.host("away-a").await["failure_state"], "UNKNOWN");
    block_in_place(|| api.start_again().unwrap());
    until_seen(&stack, "away-a", "UP").await;
    assert_unknown_without_operations(&stack, "away-a").await;
    stack.stop().await;
}

/// A user of this test, whose password can be changed: its name and its id.
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

/// Starts the API again, because Nova caches a token's validation for some minutes.
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
async fn a_changed_password_is_read_without_a_restart() {
    let cloud = cloud();
    let _computes = block_in_place(|| cloud.computes(["pass-a"]).unwrap());
    let mut api = block_in_place(|| cloud.nova_api(NovaApiOptions::default()).unwrap());
    let (name, user) = block_in_place(|| make_user(&cloud, "first"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clouds.yaml");
    let entry = Entry::new(CLOUD, &cloud).user(&name).nova_at(&api.url());
    write(&file, &[entry.clone().password("first")]);
    let stack = watching(&file, "pass-a").await;

    // A new password revokes all tokens of the user.
    let change = json!({ "user": { "password": "second" } });
    block_in_place(|| keystone(&cloud, "PATCH", &format!("/users/{user}"), Some(change)));
    forget_tokens(&mut api);
    until_seen(&stack, "pass-a", "UNKNOWN").await;
    write(&file, &[entry.password("second")]);
    until_seen(&stack, "pass-a", "UP").await;
    assert_unknown_without_operations(&stack, "pass-a").await;
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_token_is_replaced_without_a_failed_call() {
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
    // Disabling and enabling a user revokes its tokens.
    for enabled in [false, true] {
        let change = json!({ "user": { "enabled": enabled } });
        block_in_place(|| keystone(&cloud, "PATCH", &format!("/users/{user}"), Some(change)));
    }
    forget_tokens(&mut api);
    assert!(!backend.services().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_trait_in_placement_shows_whether_a_host_is_kept_away() {
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

/// A stack with simulated power whose host has this name in the cloud, and is FENCED.
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

/// Waits until the first task of an evacuation fails with these words in one of its attempts.
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
async fn an_evacuation_that_nova_refuses_gives_the_reason() {
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
