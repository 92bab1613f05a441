//! The driver `reach`: a second opinion, from where the worker is. A host that answers holds its fence; one that does not is fenced only where other addresses answer this
//! worker, so that a worker that is cut off itself says nothing.
//!
//! A connection that is refused is an answer: the host's own kernel has refused it. An address without a port is asked for an ICMP echo.

mod ping;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join;
use futures_util::future::join_all;
use ringfence_core::{Answer, Declaration, FrozenMethod, Parameter, Question, Resource, value_of};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout_at};

use super::{Asks, Others};
use crate::drivers::{Entry, required};
use crate::text::cut;
use crate::{Secrets, WorkerError};

/// Addresses of one name that are tried.
const MOST_ADDRESSES: usize = 4;
const MOST_REFERENCES: usize = 8;
/// The longest part of a banner that is read, in bytes.
const MOST_READ: usize = 256;
/// Two tries of the network's own fit into it.
const WAIT_S: &str = "3";
const ALLOWED_ADDRESS: &str = "HOST:PORT is allowed, as in 192.0.2.1:22, [2001:db8::1]:22 or ${host.name}:22, and HOST for an ICMP echo, as in 192.0.2.1 or [2001:db8::1]";
const ALLOWED_REFERENCES: &str = "1 to 8 times HOST:PORT, or HOST for an ICMP echo, with commas between them is allowed, as in 192.0.2.254,192.0.2.9:3260";

pub(in crate::drivers) static DRIVER: Entry = Entry {
    declaration: Declaration {
        name: "reach",
        about: "a second opinion: whether the host answers the worker over TCP or ICMP, and other addresses do",
        resources: &[Resource::Query],
        parameters: &[
            Parameter::required(
                "address",
                "the host's address, and a port unless it is asked for an ICMP echo; an answer holds a fence",
            )
            .or_of_host()
            .says_where()
            .allowing(ALLOWED_ADDRESS, is_address),
            Parameter::required(
                "references",
                "addresses, with ports or without, that answer the worker unless it is cut off itself",
            )
            .allowing(ALLOWED_REFERENCES, are_references),
            Parameter::optional(
                "at_least",
                "how many of the references have to answer; all if not given",
            )
            .allowing("1 to 8 is allowed", |text| number(text, 1..=8).is_some()),
            Parameter::optional(
                "banner",
                "what the host sends by itself begins with this, as in SSH-; a host that sends nothing of the kind does not answer, though its kernel may run",
            ),
            Parameter::optional("wait_s", "seconds to wait for an answer")
                .by_default(WAIT_S)
                .allowing("1 to 10 is allowed", |text| number(text, 1..=10).is_some()),
        ],
        secrets: &[],
        others: None,
        place: None,
        lingers_s: 0,
        device: |_| None,
        can_prove: |_| false,
    },
    make: |_| Arc::new(Asks(Reach)),
};

struct Reach;

/// What became of one try to reach an address.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Heard {
    /// It answered, in these words.
    Answer(String),
    /// It did not answer, in these words.
    Nothing(String),
    /// It could not be tried, such as where this machine has no route: why.
    Untried(String),
}

#[async_trait]
impl Others for Reach {
    async fn ask(
        &self,
        method: &FrozenMethod,
        _: &Secrets,
        _: &Question,
        until: Instant,
    ) -> Result<Answer, WorkerError> {
        let address = required(method, "address")?;
        let references: Vec<&str> = list(required(method, "references")?).collect();
        let needed = value_of(&method.parameters, "at_least").and_then(|text| number(text, 1..=8));
        let needed = needed.unwrap_or(references.len());
        if needed > references.len() {
            return Err(WorkerError::refused(format!(
                "at_least is {needed}, and there are {} references",
                references.len()
            )));
        }
        let wait_s = value_of(&method.parameters, "wait_s").and_then(|text| number(text, 1..=10));
        let wait = Duration::from_secs(wait_s.map_or(3, |seconds| seconds as u64));
        // What is found out has to be told in time, too.
        let until = (Instant::now() + wait).min(until - Duration::from_millis(500));
        let banner = value_of(&method.parameters, "banner");
        let (host, others) = join(
            reach(address, banner, until),
            join_all(references.iter().map(|other| reach(other, None, until))),
        )
        .await;
        judge(address, host, &references, &others, needed)
    }
}

fn judge(
    address: &str,
    host: Heard,
    references: &[&str],
    others: &[Heard],
    needed: usize,
) -> Result<Answer, WorkerError> {
    let nothing = match host {
        Heard::Answer(words) => {
            return Ok(Answer {
                is_allowed: false,
                reason: format!("{address} {words}"),
            });
        }
        Heard::Untried(why) => return Err(WorkerError::unclear(format!("{address} {why}"))),
        Heard::Nothing(words) => words,
    };
    let silent = references
        .iter()
        .zip(others)
        .filter_map(|(name, heard)| match heard {
            Heard::Answer(_) => None,
            Heard::Nothing(words) | Heard::Untried(words) => Some(format!("{name} {words}")),
        });
    let silent: Vec<String> = silent.collect();
    let (all, answered) = (references.len(), references.len() - silent.len());
    if answered < needed {
        return Err(WorkerError::unclear(format!(
            "{answered} of {all} references answer, and {needed} have to: the worker may be cut off itself ({})",
            silent.join("; ")
        )));
    }
    Ok(Answer {
        is_allowed: true,
        reason: format!("{address} {nothing}, and {answered} of {all} references answer"),
    })
}

async fn reach(address: &str, banner: Option<&str>, until: Instant) -> Heard {
    let (name, port) = split(address);
    let number = port.and_then(|port| port.parse().ok()).unwrap_or_default();
    let found = match timeout_at(until, lookup_host((name, number))).await {
        Ok(Ok(found)) => found.take(MOST_ADDRESSES).collect::<Vec<_>>(),
        Ok(Err(error)) => return Heard::Untried(format!("cannot be resolved: {error}")),
        Err(_) => return Heard::Untried("cannot be resolved in time".to_owned()),
    };
    let tries = found.into_iter().map(|at| async move {
        match port {
            Some(_) => connect(at, banner, until).await,
            None => ping::echo(at.ip(), until).await,
        }
    });
    let tries = join_all(tries).await;
    let answer = tries.iter().find(|heard| matches!(heard, Heard::Answer(_)));
    let nothing = || tries.iter().find(|heard| matches!(heard, Heard::Untried(_)));
    let heard = answer.or_else(nothing).or_else(|| tries.first());
    heard
        .cloned()
        .unwrap_or_else(|| Heard::Untried("has no address".to_owned()))
}

async fn connect(at: SocketAddr, banner: Option<&str>, until: Instant) -> Heard {
    let nothing = |why: String| Heard::Nothing(format!("does not answer: {why}"));
    let stream = match timeout_at(until, TcpStream::connect(at)).await {
        Err(_) => return nothing("no answer in time".to_owned()),
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            return match error.kind() {
                ErrorKind::ConnectionRefused if banner.is_none() => {
                    Heard::Answer("answers: it refuses the connection".to_owned())
                }
                ErrorKind::ConnectionRefused
                | ErrorKind::ConnectionReset
                | ErrorKind::HostUnreachable
                | ErrorKind::TimedOut => nothing(error.to_string()),
                _ => Heard::Untried(format!("cannot be tried: {error}")),
            };
        }
    };
    match banner {
        None => Heard::Answer("answers: it accepts the connection".to_owned()),
        Some(banner) => greeting(stream, banner, until).await,
    }
}

async fn greeting(mut stream: TcpStream, banner: &str, until: Instant) -> Heard {
    let mut said = Vec::new();
    let mut part = [0; MOST_READ];
    while said.len() < banner.len() {
        match timeout_at(until, stream.read(&mut part)).await {
            Ok(Ok(bytes)) if bytes > 0 => said.extend_from_slice(part.get(..bytes).unwrap_or_default()),
            _ => break,
        }
    }
    let words = cut(&String::from_utf8_lossy(&said));
    if said.starts_with(banner.as_bytes()) {
        Heard::Answer(format!("answers: {words}"))
    } else if said.is_empty() {
        Heard::Nothing("accepts the connection and says nothing".to_owned())
    } else {
        Heard::Nothing(format!("accepts the connection and says {words:?}"))
    }
}

fn number(text: &str, allowed: std::ops::RangeInclusive<usize>) -> Option<usize> {
    text.parse().ok().filter(|number| allowed.contains(number))
}

fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim)
}

fn are_references(text: &str) -> bool {
    list(text).count() <= MOST_REFERENCES && list(text).all(is_address)
}

/// A host, without the brackets around an IPv6 address, and its port.
fn split(address: &str) -> (&str, Option<&str>) {
    if let Some((host, after)) = address.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let port = if after.is_empty() {
            None
        } else {
            Some(after.strip_prefix(':').unwrap_or_default())
        };
        return (host, port);
    }
    match address.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (address, None),
    }
}

/// The name of a host may be a template.
fn is_address(text: &str) -> bool {
    let (host, port) = split(text);
    let is_host = !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || "/@[]".contains(c));
    let is_bare = host.contains(':') && !text.starts_with('[');
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    is_host && !is_bare && port.is_none_or(is_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port_or_none() {
        for address in [
            "192.0.2.1:22",
            "[2001:db8::1]:22",
            "${host.name}:22",
            "h1.example:3260",
            "h1",
            "${host.name}-bmc",
            "[2001:db8::1]",
        ] {
            assert!(is_address(address), "{address}");
        }
        for wrong in [
            "",
            "h1:",
            ":22",
            "[2001:db8::1",
            "[2001:db8::1]22",
            "2001:db8::1",
            "h1:0",
            "h1:70000",
            "2001:db8::1:22",
            "a@h1:22",
            "http://h1:80",
        ] {
            assert!(!is_address(wrong), "{wrong}");
        }
        assert!(are_references("a:1, b:2") && !are_references("a:1,,b:2"));
        assert!(!are_references(&["a:1"; 9].join(",")));
    }

    #[test]
    fn a_worker_that_is_cut_off_says_nothing() {
        let nothing = || Heard::Nothing("does not answer".to_owned());
        let answer = || Heard::Answer("answers".to_owned());
        let judge = |host, others: [Heard; 2], needed| judge("h1:22", host, &["a:1", "b:2"], &others, needed);
        let is_allowed = |said: Result<Answer, WorkerError>| said.ok().map(|answer| answer.is_allowed);
        assert_eq!(is_allowed(judge(nothing(), [answer(), answer()], 2)), Some(true));
        assert_eq!(is_allowed(judge(nothing(), [answer(), nothing()], 1)), Some(true));
        assert_eq!(is_allowed(judge(nothing(), [answer(), nothing()], 2)), None);
        assert_eq!(
            is_allowed(judge(answer(), [nothing(), nothing()], 2)),
            Some(false)
        );
        let untried = Heard::Untried("cannot be resolved".to_owned());
        assert_eq!(is_allowed(judge(untried.clone(), [answer(), answer()], 2)), None);
        assert_eq!(is_allowed(judge(nothing(), [answer(), untried], 2)), None);
    }
}
