//! Ports on loopback.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use crate::error::{During, LabError};

/// A TCP port that was free a moment ago.
pub(crate) fn free_tcp_port() -> Result<u16, LabError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .during(|| "looking for a free port".to_owned())
}

/// As many TCP ports, all different.
pub(crate) fn free_tcp_ports<const N: usize>() -> Result<[u16; N], LabError> {
    let mut held = Vec::new();
    let mut ports = [0; N];
    for port in &mut ports {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).during(|| "looking for a free port".to_owned())?;
        *port = listener
            .local_addr()
            .during(|| "looking for a free port".to_owned())?
            .port();
        held.push(listener);
    }
    Ok(ports)
}

/// A UDP port that was free a moment ago.
pub(crate) fn free_udp_port() -> Result<u16, LabError> {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|socket| socket.local_addr())
        .map(|address| address.port())
        .during(|| "looking for a free port".to_owned())
}

/// Whether somebody listens.
pub(crate) fn is_open(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
}
