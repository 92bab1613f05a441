//! Ports on loopback.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::ops::Range;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use parking_lot::Mutex;

use crate::error::{During, LabError};

/// The first port that is not reserved for well-known services.
const FIRST: u16 = 15_000;

/// The least number of ports to choose from: with fewer, two tests that choose at once would often choose one port.
const ENOUGH: u16 = 5_000;

/// The time that [`answers`] leaves a server.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Number of ports that are tried before an error.
const TRIES: u32 = 200;

/// The kernel's file with the range of ports for outgoing connections.
const EPHEMERAL: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// The beginning of that range if the kernel's file cannot be read.
const EPHEMERAL_FROM: u16 = 32_768;

/// The ports that this process has chosen, and the file in which it has locked the byte of each until it ends: a server starts seconds after its port was
/// chosen, and another process of tests may not choose the port meanwhile.
static CHOSEN: Mutex<Option<(File, BTreeSet<u16>)>> = Mutex::new(None);

/// A TCP port that was free a moment ago.
pub(crate) fn free_tcp_port() -> Result<u16, LabError> {
    free_tcp_ports().map(|[port]| port)
}

/// As many TCP ports, all different.
pub(crate) fn free_tcp_ports<const N: usize>() -> Result<[u16; N], LabError> {
    let mut held = Vec::new();
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = free(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)))?;
        let address = listener.local_addr();
        *port = address.during(|| "looking for a free port".to_owned())?.port();
        held.push(listener);
    }
    Ok(ports)
}

/// A UDP port that was free a moment ago.
pub(crate) fn free_udp_port() -> Result<u16, LabError> {
    free(|port| UdpSocket::bind((Ipv4Addr::LOCALHOST, port)))?
        .local_addr()
        .map(|address| address.port())
        .during(|| "looking for a free port".to_owned())
}

/// A socket on a port outside the range of outgoing connections. A server starts seconds after its port was chosen, and may start again
/// on it: no other connection may take the port meanwhile. `is_open` must not connect to itself either, as it would if the kernel gave
/// it the port that it asks for.
fn free<S>(bind: impl Fn(u16) -> std::io::Result<S>) -> Result<S, LabError> {
    let range = quiet_ports();
    let mut tried = 1;
    loop {
        let port = one_of(&range);
        let is_own = choose(port).during(|| format!("reserving port {port}"))?;
        match bind(port) {
            Err(_) if tried < TRIES => tried += 1,
            Ok(_) if !is_own && tried < TRIES => tried += 1,
            done => return done.during(|| format!("looking for a free port of {range:?}")),
        }
    }
}

/// Whether no process has chosen the port yet; then this one has.
fn choose(port: u16) -> std::io::Result<bool> {
    let mut chosen = CHOSEN.lock();
    if chosen.is_none() {
        let name = format!("ringfence-ports-{}", nix::unistd::getuid());
        let mut open = OpenOptions::new();
        let open = open.create(true).truncate(false).read(true).write(true);
        *chosen = Some((open.open(std::env::temp_dir().join(name))?, BTreeSet::new()));
    }
    let Some((file, ports)) = chosen.as_mut() else {
        return Ok(true);
    };
    let byte = nix::libc::flock {
        l_type: short(nix::libc::F_WRLCK)?,
        l_whence: short(nix::libc::SEEK_SET)?,
        l_start: port.into(),
        l_len: 1,
        l_pid: 0,
    };
    match fcntl(&*file, FcntlArg::F_OFD_SETLK(&byte)) {
        Ok(_) => Ok(ports.insert(port)),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn short(constant: i32) -> std::io::Result<i16> {
    constant.try_into().map_err(std::io::Error::other)
}

fn quiet_ports() -> Range<u16> {
    let said = std::fs::read_to_string(EPHEMERAL).unwrap_or_default();
    let first = said
        .split_whitespace()
        .next()
        .and_then(|port| port.parse::<u16>().ok());
    // If nearly all ports are for outgoing connections, any free port must do.
    let end = first.filter(|first| *first >= FIRST + ENOUGH);
    FIRST..end.unwrap_or(EPHEMERAL_FROM)
}

fn one_of(range: &Range<u16>) -> u16 {
    // Every `RandomState` has new keys from the system's random numbers.
    let random = RandomState::new().build_hasher().finish();
    let count = u64::from(range.end - range.start);
    range.start + u16::try_from(random % count).unwrap_or_default()
}

/// Whether a server listens on the port.
pub(crate) fn is_open(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
}

/// Whether an HTTP server on the port answers, whatever it answers. `uwsgi` listens before its application is loaded, and a load can hang.
pub(crate) fn answers(port: u16) -> bool {
    let ask = || {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut server = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        server.set_read_timeout(Some(ANSWER_LIMIT))?;
        server.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
        server.read_exact(&mut [0])
    };
    ask().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_listens_and_says_nothing_does_not_answer() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = server.local_addr().unwrap().port();
        assert!(is_open(port));

        let answering = std::thread::spawn(move || {
            let _probe = server.accept().unwrap();
            let (mut client, _) = server.accept().unwrap();
            client.write_all(b"HTTP/1.0 404 Not Found\r\n\r\n").unwrap();
            let closed = server.accept().unwrap();
            drop(closed);
        });

        assert!(answers(port));
        assert!(!answers(port));
        answering.join().unwrap();
    }

    #[test]
    fn chosen_ports_are_free_different_and_outside_the_range_of_connections() {
        let ports = free_tcp_ports::<50>().unwrap();
        let range = quiet_ports();
        assert!(
            ports.iter().all(|port| range.contains(port)),
            "{ports:?} of {range:?}"
        );
        // One that another process has chosen is not chosen.
        assert!(!choose(ports[0]).unwrap());
        let different = ports.iter().collect::<std::collections::BTreeSet<_>>();
        assert_eq!(different.len(), ports.len());
        assert!(ports.into_iter().all(|port| !is_open(port)));
    }
}
