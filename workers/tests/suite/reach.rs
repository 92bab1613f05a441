//! Whether a host answers a worker, and the worker is not cut off itself: real connections.

use std::net::SocketAddr;

use ringfence_core::{Answer as Said, Cause, FailureState, FrozenMethod, HostId, Question, Resource};
use ringfence_workers::WorkerError;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use uuid::Uuid;

use crate::{drivers, method, no_secrets, seconds};

async fn ask(method: &FrozenMethod) -> Result<Said, WorkerError> {
    let question = Question {
        host: "sim-1".to_owned(),
        host_id: HostId(Uuid::from_u128(1)),
        segment: "rack-4".to_owned(),
        zone: "z1".to_owned(),
        cause: Cause::Silence,
        failure_state: FailureState::Unreachable,
        failure_since: None,
        gone: Vec::new(),
    };
    let driver = drivers().get(&method.driver).unwrap();
    driver.ask(method, &no_secrets(), &question, seconds(10)).await
}

async fn reach(address: &str, references: &str, more: &[(&str, &str)]) -> Result<Said, WorkerError> {
    let mut parameters = vec![("address", address), ("references", references), ("wait_s", "1")];
    parameters.extend(more);
    ask(&method("reach", Resource::Query, &parameters)).await
}

/// Accepts connections, and says this.
async fn service(greeting: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            drop(stream.write_all(greeting.as_bytes()).await);
            open.push(stream);
        }
    });
    address.to_string()
}

/// A port that no packet comes back from: its queue is full, so that the kernel drops what comes.
struct Silent {
    address: SocketAddr,
    _listener: TcpListener,
    _queued: Vec<TcpStream>,
}

impl Silent {
    async fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let mut queued = Vec::new();
        while let Ok(Ok(stream)) = tokio::time::timeout(seconds(1), TcpStream::connect(address)).await {
            queued.push(stream);
        }
        Self {
            address,
            _listener: listener,
            _queued: queued,
        }
    }
}

#[tokio::test]
async fn an_address_without_a_port_is_asked_for_an_echo() {
    let reference = service("").await;
    let held = reach("127.0.0.1", &reference, &[]).await.unwrap();
    assert_eq!(
        (held.is_allowed, held.reason.as_str()),
        (false, "127.0.0.1 answers: an ICMP echo")
    );
    let held = reach("[::1]", "localhost", &[]).await.unwrap();
    assert_eq!(
        (held.is_allowed, held.reason.as_str()),
        (false, "[::1] answers: an ICMP echo")
    );
    // No echo comes from a group address (RFC 1122, 3.2.1.3): none is heard, or there is no way to it.
    let silent = reach("239.255.0.1", "127.0.0.1", &[]).await;
    let told = silent.map_or_else(
        |error| error.to_string(),
        |said| format!("{}: {}", said.is_allowed, said.reason),
    );
    let allowed = "true: 239.255.0.1 does not answer: no echo in time, and 1 of 1 references answer";
    assert!(
        told == allowed || told.starts_with("239.255.0.1 cannot be tried: "),
        "{told}"
    );
}

/// A port at which nothing listens.
async fn closed() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

#[tokio::test]
async fn a_host_that_answers_holds_its_fence() {
    let (open, closed) = (service("").await, closed().await);
    let reference = service("").await;
    let held = reach(&open, &reference, &[]).await.unwrap();
    assert_eq!(
        (held.is_allowed, held.reason),
        (false, format!("{open} answers: it accepts the connection"))
    );
    // The kernel of the host runs.
    let held = reach(&closed, &reference, &[]).await.unwrap();
    assert_eq!(
        (held.is_allowed, held.reason),
        (false, format!("{closed} answers: it refuses the connection"))
    );
    let ssh = service("SSH-2.0-OpenSSH_9.2p1\r\n").await;
    let held = reach(&ssh, &reference, &[("banner", "SSH-")]).await.unwrap();
    assert_eq!(
        (held.is_allowed, held.reason),
        (false, format!("{ssh} answers: SSH-2.0-OpenSSH_9.2p1"))
    );
}

#[tokio::test]
async fn a_host_that_answers_nothing_is_fenced_where_the_worker_is_not_cut_off() {
    let silent = Silent::new().await;
    let host = silent.address.to_string();
    let (one, other) = (service("").await, closed().await);
    let allowed = reach(&host, &format!("{one}, {other}"), &[]).await.unwrap();
    assert_eq!(
        (allowed.is_allowed, allowed.reason),
        (
            true,
            format!("{host} does not answer: no answer in time, and 2 of 2 references answer")
        )
    );
    // A hung host whose kernel runs says nothing.
    let hung = service("").await;
    let allowed = reach(&hung, &one, &[("banner", "SSH-")]).await.unwrap();
    assert!(allowed.is_allowed, "{}", allowed.reason);
    let busy = service("220 mail\r\n").await;
    let allowed = reach(&busy, &one, &[("banner", "SSH-")]).await.unwrap();
    assert!(allowed.reason.contains("says \"220 mail"), "{}", allowed.reason);
}

#[tokio::test]
async fn a_worker_that_its_references_do_not_answer_says_nothing() {
    let silent = Silent::new().await;
    let (host, one) = (silent.address.to_string(), service("").await);
    let references = format!("{one},{host}");
    let cut_off = reach(&host, &references, &[]).await.unwrap_err();
    assert_eq!(
        cut_off.to_string(),
        format!(
            "1 of 2 references answer, and 2 have to: the worker may be cut off itself ({host} does not answer: no answer in time)"
        )
    );
    let enough = reach(&host, &references, &[("at_least", "1")]).await.unwrap();
    assert!(enough.is_allowed, "{}", enough.reason);
    let impossible = reach(&host, &references, &[("at_least", "3")]).await.unwrap_err();
    assert_eq!(
        impossible.to_string(),
        "at_least is 3, and there are 2 references"
    );
    let unknown = reach("no-such-host.invalid:22", &one, &[]).await.unwrap_err();
    assert!(
        unknown
            .to_string()
            .contains("no-such-host.invalid:22 cannot be resolved"),
        "{unknown}"
    );
}
