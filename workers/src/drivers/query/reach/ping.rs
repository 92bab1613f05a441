//! An ICMP echo: asked for each second anew, since one packet may be lost.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::time::Duration;

use surge_ping::{Client, Config, ICMP, PingIdentifier, PingSequence, SurgeError};
use tokio::time::Instant;

use super::Heard;

/// How long an echo is waited for.
const EVERY: Duration = Duration::from_secs(1);

/// Whether the address answers until then.
pub(super) async fn echo(address: IpAddr, until: Instant) -> Heard {
    let kind = if address.is_ipv4() { ICMP::V4 } else { ICMP::V6 };
    let client = match Client::new(&Config::builder().kind(kind).build()) {
        Ok(client) => client,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Heard::Untried(
                "cannot be tried: the worker may send no ICMP echo; let its group do so (net.ipv4.ping_group_range) or give it CAP_NET_RAW"
                    .to_owned(),
            );
        }
        Err(error) => return untried(&error.into()),
    };
    let mut pinger = client
        .pinger(address, PingIdentifier(std::process::id() as u16))
        .await;
    let mut sequence = 0;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Heard::Nothing("does not answer: no echo in time".to_owned());
        }
        pinger.timeout(left.min(EVERY));
        match pinger.ping(PingSequence(sequence), &[]).await {
            Ok(_) => return Heard::Answer("answers: an ICMP echo".to_owned()),
            Err(SurgeError::Timeout { .. }) => sequence += 1,
            Err(SurgeError::IOError(error)) if error.kind() == ErrorKind::HostUnreachable => {
                return Heard::Nothing(format!("does not answer: {error}"));
            }
            Err(error) => return untried(&error),
        }
    }
}

fn untried(error: &SurgeError) -> Heard {
    Heard::Untried(format!("cannot be tried: {error}"))
}
