//! `ringfence api` with Keystone, set up as an operator would do it.

use std::time::{Duration, Instant};

use ringfence_lab::Authority;
use ringfence_tests::{Cloud, Ground, Machine, SERVICE_PASSWORD, Site, set_up, start_api};

/// A machine whose API has no static tokens, uses this Keystone, and reads the service user's password from a file.
fn with_keystone(machine: Machine, url: &str) -> Machine {
    let password = machine.file("keystone.password").display().to_string();
    machine
        .set("RINGFENCE_API_TOKENS_FILE", "")
        .set("RINGFENCE_KEYSTONE_URL", format!("{url}/v3"))
        .set("RINGFENCE_KEYSTONE_PASSWORD", format!("file:{password}"))
        .set("RINGFENCE_KEYSTONE_SCOPES", "system,project:service@Default")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_accepts_tokens_of_keystone_over_tls_and_reads_a_corrected_password_without_a_restart() {
    let authority = Authority::new().unwrap();
    let cloud = Cloud::start_with_tls(&authority).await;
    cloud.user("chief", "service", &["admin"]).await;
    let (machine, _) = set_up(&Site::new(Ground::Distributed).await).await;
    let ca_file = machine.file("ca.pem");
    let password = machine.file("keystone.password");
    std::fs::write(&ca_file, authority.certificate()).unwrap();
    std::fs::write(&password, "hunter2\n").unwrap();
    let machine = with_keystone(machine, &cloud.keystone.url())
        .set("RINGFENCE_KEYSTONE_CA_FILE", ca_file.display().to_string());
    let mut api = start_api(&machine);
    let url = api.until_it_listens("the API listens").await;
    let token = cloud.token("chief", "service").await;
    let operator = Machine::new()
        .set("RINGFENCE_URL", &url)
        .set("RINGFENCE_TOKEN", &token);
    let wrong = operator.run(&["host", "add", "h1"]).await;
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(
        wrong.err.contains("fencing.keystone.unavailable") && wrong.err.contains("own user"),
        "{wrong:?}"
    );
    let finding = async || {
        let asked = machine.run(&["doctor", "-o", "json"]).await.json();
        let findings = asked["findings"].as_array().unwrap().clone();
        let found = findings.iter().find(|finding| finding["part"] == "keystone");
        found.unwrap().clone()
    };
    let unwell = finding().await;
    assert_eq!(unwell["state"], "failed", "{unwell}");
    assert!(unwell["found"].as_str().unwrap().contains("own user"), "{unwell}");
    std::fs::write(&password, format!("{SERVICE_PASSWORD}\n")).unwrap();
    assert_eq!(finding().await["state"], "ok");
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let made = operator.run(&["host", "add", "h1"]).await;
        if made.code == Some(0) {
            break;
        }
        assert!(Instant::now() < deadline, "{made:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let trail = operator.run(&["audit", "list"]).await;
    assert!(trail.out.contains("chief@Default (user "), "{trail:?}");
    let printed = api.printed();
    for secret in ["hunter2", SERVICE_PASSWORD, token.as_str()] {
        assert!(!printed.contains(secret), "{printed}");
    }
    api.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_incomplete_configuration_of_keystone_ends_the_api_and_names_the_missing_key() {
    let (machine, _) = set_up(&Site::new(Ground::Distributed).await).await;
    let machine = with_keystone(machine, "http://127.0.0.1:1").set("RINGFENCE_KEYSTONE_SCOPES", "");
    let refused = async |machine: &Machine, words: &[&str]| {
        let run = machine.run(&["api", "--listen", "127.0.0.1:0"]).await;
        assert_eq!(run.code, Some(2), "{run:?}");
        for word in words {
            assert!(run.err.contains(word), "{word:?} is not in {run:?}");
        }
        assert!(!format!("{run:?}").contains("hunter2"), "{run:?}");
    };
    refused(
        &machine,
        &["keystone.scopes is not set", "project:PROJECT@DOMAIN"],
    )
    .await;
    let machine = machine.set("RINGFENCE_KEYSTONE_SCOPES", "project:service");
    refused(
        &machine,
        &["keystone.scopes", "project:service", "project:PROJECT@DOMAIN"],
    )
    .await;
    let machine = machine
        .set("RINGFENCE_KEYSTONE_SCOPES", "system")
        .set("RINGFENCE_KEYSTONE_PASSWORD", "hunter2");
    refused(&machine, &["keystone.password", "file:/absolute/path"]).await;
    let machine = machine.set("RINGFENCE_KEYSTONE_PASSWORD", "");
    refused(&machine, &["keystone.password is not set"]).await;
    let machine = machine
        .set("RINGFENCE_KEYSTONE_PASSWORD", "env:RINGFENCE_SECRET_KEYSTONE")
        .set("RINGFENCE_KEYSTONE_CA_FILE", "/nowhere.pem");
    refused(&machine, &["Keystone's certificate authority", "/nowhere.pem"]).await;
}
