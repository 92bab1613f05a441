//! TLS of the API: its certificate and key, and what commands report about them.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use reqwest::Method;
use ringfence_lab::{Authority, Issued};
use ringfence_tests::{Client, Ground, Machine, Run, Service, Site, set_up, start_api};
use serde_json::json;

/// Writes certificate and key to the files of the configuration.
fn put(machine: &Machine, pair: &Issued) {
    put_as(machine, &pair.certificate, &pair.key, 0o600);
}

fn put_as(machine: &Machine, certificate: &str, key: &str, mode: u32) {
    let key_file = machine.file("api.key");
    std::fs::write(machine.file("api.crt"), certificate).unwrap();
    std::fs::write(&key_file, key).unwrap();
    std::fs::set_permissions(&key_file, PermissionsExt::from_mode(mode)).unwrap();
}

/// A machine whose API has a certificate, and an admin's token.
async fn machine_with_tls(pair: &Issued) -> (Machine, String) {
    let (machine, token) = set_up(&Site::new(Ground::Distributed).await).await;
    put(&machine, pair);
    let (certificate, key) = (machine.file("api.crt"), machine.file("api.key"));
    let machine = machine
        .set(
            "RINGFENCE_API_CERTIFICATE_FILE",
            certificate.display().to_string(),
        )
        .set("RINGFENCE_API_KEY_FILE", key.display().to_string());
    (machine, token)
}

/// The port of an API that listens with TLS.
async fn port(api: &mut Service) -> String {
    let url = api.until_it_listens("the API listens").await;
    url.rsplit(':').next().unwrap().to_owned()
}

/// The output of a handshake with `openssl`.
async fn handshake(port: &str, arguments: &[&str]) -> String {
    let mut command = Command::new("openssl");
    command
        .args(["s_client", "-connect", &format!("127.0.0.1:{port}")])
        .args(arguments)
        .stdin(Stdio::null());
    let done = tokio::task::spawn_blocking(move || command.output())
        .await
        .unwrap()
        .unwrap();
    String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_certificate_is_read_while_listeners_stay_and_a_bad_certificate_is_refused() {
    let (old, new) = (Authority::new().unwrap(), Authority::new().unwrap());
    let (machine, token) = machine_with_tls(&old.issue(&["localhost"]).unwrap()).await;
    let mut api = start_api(&machine);
    let base = format!("https://localhost:{}", port(&mut api).await);
    let before = Client::with_authority(&base, Some(&token), &old.certificate());
    before.get("/hosts").await.ok(200);
    let listening = before.request(Method::GET, "/events/stream?after=0");
    let mut stream = listening.send().await.unwrap();

    // The key belongs to another certificate.
    let wrong = new.issue(&["localhost"]).unwrap();
    put_as(
        &machine,
        &new.issue(&["localhost"]).unwrap().certificate,
        &wrong.key,
        0o600,
    );
    api.hang_up();
    api.until_says(&[
        "the new certificate is refused",
        "api.key_file",
        "is not the key of",
    ])
    .await;
    Client::with_authority(&base, Some(&token), &old.certificate())
        .get("/hosts")
        .await
        .ok(200);

    put(&machine, &new.issue(&["localhost"]).unwrap());
    api.hang_up();
    api.until_says(&["the certificate was read again"]).await;
    let after = Client::with_authority(&base, Some(&token), &new.certificate());
    after.post("/hosts", json!({ "name": "h1" })).await.ok(201);
    let mut text = String::new();
    while !text.contains("event: host.created") {
        text.push_str(&String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap()));
    }
    let strangers = Client::with_authority(&base, Some(&token), &old.certificate());
    assert!(strangers.request(Method::GET, "/hosts").send().await.is_err());
    api.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_tls_1_2_and_1_3_with_http_1_1_are_served() {
    let authority = Authority::new().unwrap();
    let (machine, _) = machine_with_tls(&authority.issue(&["127.0.0.1"]).unwrap()).await;
    let mut api = start_api(&machine);
    let port = port(&mut api).await;
    let newest = handshake(&port, &["-alpn", "h2,http/1.1"]).await;
    assert!(
        newest.contains("TLSv1.3") && newest.contains("ALPN protocol: http/1.1"),
        "{newest}"
    );
    let older = handshake(&port, &["-tls1_2", "-alpn", "http/1.1"]).await;
    assert!(
        older.contains("TLSv1.2") && older.contains("ALPN protocol: http/1.1"),
        "{older}"
    );
    let too_old = handshake(&port, &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]).await;
    assert!(too_old.contains("New, (NONE), Cipher is (NONE)"), "{too_old}");
    api.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_cannot_be_used_end_the_api_before_it_listens() {
    let authority = Authority::new().unwrap();
    let pair = authority.issue(&["localhost"]).unwrap();
    let other = authority.issue(&["localhost"]).unwrap();
    let (machine, _) = machine_with_tls(&pair).await;
    let refused = |run: &Run, words: &[&str]| {
        assert_eq!(run.code, Some(1), "{run:?}");
        for word in words {
            assert!(run.err.contains(word), "{word:?} is not in {run:?}");
        }
        assert!(!format!("{run:?}").contains("the API listens"), "{run:?}");
    };
    let start = async || machine.run(&["api", "--listen", "127.0.0.1:0"]).await;
    put_as(&machine, &pair.certificate, &other.key, 0o600);
    refused(
        &start().await,
        &["api.key_file", "api.key", "is not the key of", "api.crt"],
    );
    put_as(&machine, &pair.certificate, &pair.key, 0o644);
    refused(&start().await, &["api.key_file", "mode 0644", "chmod 600"]);
    put_as(&machine, &pair.certificate, "nothing", 0o600);
    refused(&start().await, &["api.key_file", "holds no private key"]);
    put_as(&machine, "nothing", &pair.key, 0o600);
    refused(&start().await, &["api.certificate_file", "holds no certificate"]);
    std::fs::remove_file(machine.file("api.crt")).unwrap();
    refused(
        &start().await,
        &["api.certificate_file", "api.crt", "No such file"],
    );
    let machine = machine.set("RINGFENCE_API_KEY_FILE", "");
    let half = machine.run(&["api"]).await;
    assert_eq!(half.code, Some(2), "{half:?}");
    assert!(half.err.contains("api.key_file is not set"), "{half:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_check_the_certificate_and_report_its_error() {
    let authority = Authority::new().unwrap();
    let (machine, token) = machine_with_tls(&authority.issue(&["fencing.example"]).unwrap()).await;
    let mut api = start_api(&machine);
    let url = format!("https://localhost:{}", port(&mut api).await);
    let ca_file = machine.file("ca.pem").display().to_string();
    std::fs::write(&ca_file, authority.certificate()).unwrap();
    let operator = Machine::new()
        .set("RINGFENCE_URL", &url)
        .set("RINGFENCE_TOKEN", &token);
    let unknown = operator.run(&["host", "list"]).await;
    assert_eq!(unknown.code, Some(6), "{unknown:?}");
    assert!(unknown.err.contains("--ca-file"), "{unknown:?}");
    let other_name = operator.run(&["host", "list", "--ca-file", &ca_file]).await;
    assert_eq!(other_name.code, Some(6), "{other_name:?}");
    assert!(
        other_name.err.contains("does not match") && other_name.err.contains("localhost"),
        "{other_name:?}"
    );

    put(&machine, &authority.issue(&["localhost"]).unwrap());
    api.hang_up();
    api.until_says(&["the certificate was read again"]).await;
    let fine = operator
        .set("RINGFENCE_CA_FILE", &ca_file)
        .run(&["host", "list"])
        .await;
    assert_eq!(fine.code, Some(0), "{fine:?}");
    api.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_and_log_report_a_certificate_that_expires_soon_or_has_expired() {
    let authority = Authority::new().unwrap();
    let (machine, _) = machine_with_tls(&authority.issue_for(&["localhost"], -90, 29).unwrap()).await;
    let finding = async || {
        let asked = machine.run(&["doctor", "-o", "json"]).await.json();
        let findings = asked["findings"].as_array().unwrap().clone();
        findings
            .into_iter()
            .find(|finding| finding["part"] == "certificate")
            .unwrap()
    };
    let soon = finding().await;
    assert_eq!(soon["state"], "warning", "{soon}");
    assert!(soon["found"].as_str().unwrap().contains("expires at"), "{soon}");
    put(&machine, &authority.issue(&["localhost"]).unwrap());
    assert_eq!(finding().await["state"], "ok");
    let (one, two) = (
        authority.issue(&["localhost"]).unwrap(),
        authority.issue(&["localhost"]).unwrap(),
    );
    put_as(&machine, &one.certificate, &two.key, 0o600);
    let apart = finding().await;
    assert_eq!(apart["state"], "failed", "{apart}");
    assert!(
        apart["found"].as_str().unwrap().contains("is not the key of"),
        "{apart}"
    );
    put(&machine, &authority.issue_for(&["localhost"], -90, -1).unwrap());
    assert_eq!(finding().await["state"], "failed");
    let mut api = start_api(&machine);
    api.until_says(&["api.certificate_file has expired", "the API listens"])
        .await;
    api.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn standalone_with_a_certificate_listens_everywhere_and_shows_the_new_one_when_it_is_renewed() {
    let (old, new) = (Authority::new().unwrap(), Authority::new().unwrap());
    let machine = Machine::new();
    put(&machine, &old.issue(&["localhost"]).unwrap());
    std::fs::write(machine.file("ca.pem"), old.certificate()).unwrap();
    let tokens = machine.file("tokens.toml").display().to_string();
    let words = ["token", "create", "--name", "scheduler", "--role", "reader"];
    let made = machine
        .run(&[&words[..], &["--tokens-file", &tokens]].concat())
        .await;
    assert_eq!(made.code, Some(0), "{made:?}");
    let path = |name: &str| machine.file(name).display().to_string();
    let variables = [
        ("RINGFENCE_API_CERTIFICATE_FILE", path("api.crt")),
        ("RINGFENCE_API_KEY_FILE", path("api.key")),
        ("RINGFENCE_API_TOKENS_FILE", tokens),
        ("RINGFENCE_DATA_DIR", path("data")),
        ("RINGFENCE_CA_FILE", path("ca.pem")),
    ];
    let variables: Vec<_> = variables
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let words = ["standalone", "--listen", "0.0.0.0:0"];
    let mut service = machine.start_with("standalone", &words, &variables);
    let url = service.until_it_listens("ready").await;
    let base = format!("https://localhost:{}", url.rsplit(':').next().unwrap());

    // Commands beside it find it, and its admin's token; others have the tokens of the file.
    let listed = machine.run_with(&["host", "list"], &variables).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let reader = Client::with_authority(&base, Some(made.out.trim()), &old.certificate());
    reader.get("/hosts").await.ok(200);
    assert_eq!(reader.post("/hosts", json!({ "name": "h1" })).await.status, 403);

    put(&machine, &new.issue(&["localhost"]).unwrap());
    service.until_says(&["the certificate was read again"]).await;
    let after = Client::with_authority(&base, Some(made.out.trim()), &new.certificate());
    after.get("/hosts").await.ok(200);
    service.stop().await;
}
