//! A Nova API that answers 503 now and then: a read is repeated, a change is not.

use std::path::Path;

use ringfence_backends::BackendError;
use ringfence_lab::{NovaApiOptions, OPENSTACK_PASSWORD, User, WsgiFilter};
use tokio::task::block_in_place;

use super::plant::{backend, cloud, entry};

const UNKNOWN_SERVER: &str = "00000000-0000-0000-0000-000000000000";

/// Answers 503 as often as the file `left` says, and writes every request of a client to the file `asked`.
const STUMBLES: &str = r#"
import os


def factory(_, folder, **settings):
    left, asked = (os.path.join(folder, name) for name in ("left", "asked"))

    def make(app):
        def call(environ, start):
            with open(asked, "a") as file:
                file.write("%s %s\n" % (environ["REQUEST_METHOD"], environ["PATH_INFO"]))
            with open(left) as file:
                count = int(file.read())
            if not count:
                return app(environ, start)
            with open(left, "w") as file:
                file.write(str(count - 1))
            start("503 Service Unavailable", [("Content-Type", "text/plain")])
            return [b"stumbled"]

        return call

    return make
"#;

fn stumble(folder: &Path, times: u32) {
    std::fs::write(folder.join("left"), times.to_string()).unwrap();
    std::fs::write(folder.join("asked"), "").unwrap();
}

/// Counts the requests of this method since `stumble`.
fn asked(folder: &Path, method: &str) -> usize {
    let asked = std::fs::read_to_string(folder.join("asked")).unwrap();
    asked.lines().filter(|line| line.starts_with(method)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_from_nova_is_retried_and_a_change_is_sent_once() {
    let cloud = cloud();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("stumbles.py"), STUMBLES).unwrap();
    stumble(folder.path(), 0);
    let filter = WsgiFilter {
        factory: "stumbles:factory".to_owned(),
        python_path: folder.path().to_owned(),
        settings: vec![("folder".to_owned(), folder.path().display().to_string())],
    };
    let options = NovaApiOptions {
        filter: Some(filter),
        ..NovaApiOptions::default()
    };
    let api = block_in_place(|| cloud.nova_api(options).unwrap());
    let more = format!("    compute_endpoint_override: {}\n", api.url());
    let settings = tempfile::tempdir().unwrap();
    let backend = backend(
        &settings,
        &entry(&cloud, User::Fencing, OPENSTACK_PASSWORD, &more),
    );
    backend.services().await.unwrap();

    stumble(folder.path(), 2);
    backend.services().await.unwrap();
    assert_eq!(asked(folder.path(), "GET"), 3);

    stumble(folder.path(), 100);
    let away = backend.services().await.unwrap_err();
    assert!(
        matches!(away, BackendError::Away { service: "nova", .. }),
        "{away}"
    );
    assert_eq!(
        asked(folder.path(), "GET"),
        3,
        "the call is tried three times, and then fails"
    );

    // The first request may have been carried out, and Nova would carry out a second one as well.
    stumble(folder.path(), 1);
    let unknown = backend.start(UNKNOWN_SERVER).await.unwrap_err();
    assert!(matches!(unknown, BackendError::Away { .. }), "{unknown}");
    assert_eq!(asked(folder.path(), "POST"), 1);
    let refused = backend.start(UNKNOWN_SERVER).await.unwrap_err();
    assert!(matches!(refused, BackendError::NotFound { .. }), "{refused}");
}
