//! TLS to the database and to the broker, with a private authority.

use ringfence_lab::{Authority, PostgreSql, RabbitMq};
use ringfence_tests::{Machine, Run, start_api};

const KEYS: &str = "k1:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";

/// Starts a database and a broker that accept only TLS.
async fn peers(
    database: &'static str,
    broker: &'static str,
    authority: &Authority,
) -> (PostgreSql, RabbitMq) {
    let (database, broker) = (
        authority.issue(&[database]).unwrap(),
        authority.issue(&[broker]).unwrap(),
    );
    tokio::task::spawn_blocking(|| {
        (
            PostgreSql::start_with_tls(database).unwrap(),
            RabbitMq::start_with_tls(broker).unwrap(),
        )
    })
    .await
    .unwrap()
}

/// A machine that is configured with these peers, and trusts the authority.
fn machine(postgres: &PostgreSql, rabbit: &RabbitMq, authority: &Authority) -> Machine {
    let machine = Machine::new();
    let file = |name: &str, text: &str| {
        let path = machine.file(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        path.display().to_string()
    };
    let ca = file("ca.pem", &authority.certificate());
    let (keys, tokens) = (file("keys", KEYS), file("tokens.toml", ""));
    let url = format!(
        "{}?sslmode=verify-full&sslrootcert={ca}",
        postgres.url("postgres")
    );
    machine
        .set("RINGFENCE_DATABASE_URL", url)
        .set("RINGFENCE_BUS_URL", rabbit.url())
        .set("RINGFENCE_BUS_CA_FILE", ca)
        .set("RINGFENCE_BUS_KEYS_FILE", keys)
        .set("RINGFENCE_API_TOKENS_FILE", tokens)
}

fn said(run: &Run, words: &[&str]) {
    for word in words {
        assert!(
            run.err.contains(word) || run.out.contains(word),
            "{word:?} is not in {run:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_reach_a_database_and_a_broker_that_accept_only_tls() {
    let authority = Authority::new().unwrap();
    let (postgres, rabbit) = peers("127.0.0.1", "127.0.0.1", &authority).await;
    let machine = machine(&postgres, &rabbit, &authority);
    let migrated = machine.run(&["db", "migrate"]).await;
    assert_eq!(migrated.code, Some(0), "{migrated:?}");
    let mut api = start_api(&machine);
    api.until_it_listens("the API listens").await;
    let examined = machine.run(&["doctor"]).await;
    said(&examined, &[&format!("127.0.0.1:{} can be used", rabbit.port())]);
    api.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_whose_certificate_is_for_another_name_is_refused_with_a_reason() {
    let authority = Authority::new().unwrap();
    let (postgres, rabbit) = peers("database.example", "broker.example", &authority).await;
    let machine = machine(&postgres, &rabbit, &authority);
    let migrated = machine.run(&["db", "migrate"]).await;
    assert_eq!(migrated.code, Some(1), "{migrated:?}");
    said(&migrated, &["certificate", "127.0.0.1", "database.example"]);
    let url = format!(
        "{}?sslmode=verify-ca&sslrootcert={}",
        postgres.url("postgres"),
        machine.file("ca.pem").display()
    );
    let machine = machine.set("RINGFENCE_DATABASE_URL", url);
    let migrated = machine.run(&["db", "migrate"]).await;
    assert_eq!(migrated.code, Some(0), "{migrated:?}");
    let examined = machine.run(&["doctor"]).await;
    assert_eq!(examined.code, Some(1), "{examined:?}");
    said(&examined, &["certificate", "broker.example"]);
    // A certificate of an authority that is not configured is refused.
    let stranger = Authority::new().unwrap();
    std::fs::write(machine.file("ca.pem"), stranger.certificate()).unwrap();
    let migrated = machine.run(&["db", "migrate"]).await;
    assert_eq!(migrated.code, Some(1), "{migrated:?}");
    said(&migrated, &["certificate", "UnknownIssuer"]);
}
