//! Changes while the agent runs.

use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ringfence_tests::{Machine, eventually};
use serde_json::json;

use super::{Place, ended, failed};

/// A `ringfence` that waits before its first confirmation until the file `go` exists.
fn program_that_waits_before_it_confirms(place: &Place) -> String {
    let (asked, go) = (place.file("asked"), place.file("go"));
    let text = format!(
        "if [ \"$1 $2\" = 'host confirm' ] && [ ! -e '{asked}' ]; then\n\
         touch '{asked}'\nwhile [ ! -e '{go}' ]; do sleep 0.1; done\nfi\nexec '{}' \"$@\"\n",
        Machine::program().display()
    );
    place.script("slow", &text)
}

async fn until_file_exists(path: &str) {
    eventually(async || Path::new(path).exists()).await;
}

/// After the agent has read the host, a fence takes the next generation and is cancelled: it may have given the host something back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_has_changed_since_the_agent_read_it_is_not_confirmed() {
    let place = Place::start().await;
    place.host("h1", "UNREACHABLE").await;
    let program = program_that_waits_before_it_confirms(&place);
    let child = place.begin(&[
        ("action", "off"),
        ("mode", "confirm"),
        ("plug", "h1"),
        ("program", &program),
    ]);
    until_file_exists(&place.file("asked")).await;
    let fence = place.client.fence("h1").await;
    place.client.cancel(&fence, "test").await;
    std::fs::write(place.file("go"), "").unwrap();
    failed(&ended(child).await, &["h1 has changed since the agent read it"]);
    assert!(!place.is_fenced("h1").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_that_began_after_the_agent_read_the_host_is_completed_by_the_confirmation() {
    let place = Place::start().await;
    // The host's BMC does not answer, so that the fence cannot end by itself.
    place.host("h1", "UNREACHABLE").await;
    let program = program_that_waits_before_it_confirms(&place);
    let child = place.begin(&[
        ("action", "off"),
        ("mode", "confirm"),
        ("plug", "h1"),
        ("program", &program),
    ]);
    until_file_exists(&place.file("asked")).await;
    let fence = place.client.fence("h1").await;
    std::fs::write(place.file("go"), "").unwrap();
    let done = ended(child).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    let host = place.client.host("h1").await;
    assert_eq!(
        (&host["fencing_state"], &host["generation"]),
        (&json!("FENCED"), &fence["generation"])
    );
}

/// Pacemaker ends an agent that exceeds its deadline.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_ended_ends_its_command_and_an_agent_past_its_deadline_fails() {
    let place = Place::start().await;
    let pid_file = place.file("pid");
    let program = place.script("hangs", &format!("echo $$ >'{pid_file}'\nexec sleep 600\n"));
    let off = [("action", "off"), ("plug", "h1"), ("program", program.as_str())];
    let late = place.call(&[&off[..], &[("timeout", "5")]].concat()).await;
    failed(&late, &["has not ended in time", "pcmk_off_timeout"]);

    std::fs::remove_file(&pid_file).unwrap();
    let child = place.begin(&[&off[..], &[("timeout", "3600")]].concat());
    eventually(async || std::fs::read_to_string(&pid_file).is_ok_and(|text| text.ends_with('\n'))).await;
    let command: i32 = std::fs::read_to_string(&pid_file)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
    failed(&ended(child).await, &[]);
    assert!(kill(Pid::from_raw(command), None).is_err());
}
