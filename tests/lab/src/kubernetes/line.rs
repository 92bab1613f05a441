//! The line between a host and the API server, which can be cut.

use std::collections::BTreeMap;
use std::io::copy;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;

use crate::error::{During, LabError};

/// A relay on a port of its own. While it is cut it ends every connection.
#[derive(Debug)]
pub(super) struct Line {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_cut: bool,
    is_over: bool,
    last: u64,
    /// Both ends of each connection.
    open: BTreeMap<u64, [TcpStream; 2]>,
}

impl Line {
    /// A line to this port of this machine.
    pub(super) fn to(port: u16) -> Result<Self, LabError> {
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).during(|| "a port for a line".to_owned())?;
        let address = listener.local_addr().during(|| "the port of a line".to_owned())?;
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for near in listener.incoming() {
                let Ok(near) = near else { return };
                if of_thread.state.lock().is_over {
                    return;
                }
                of_thread.connect(near, peer);
            }
        });
        Ok(Self { address, shared })
    }

    /// Where the host finds the API server.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts the line, or mends it.
    pub(super) fn cut(&self, is_cut: bool) {
        let mut state = self.shared.state.lock();
        state.is_cut = is_cut;
        if is_cut {
            state.end_all();
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.is_over = true;
        state.end_all();
        drop(state);
        // The thread looks at its end with the next connection.
        let _ = TcpStream::connect(self.address);
    }
}

impl State {
    fn end_all(&mut self) {
        for stream in self.open.values().flatten() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.open.clear();
    }
}

impl Shared {
    /// A connection that cannot be made is ended, as by a router without a route.
    fn connect(self: &Arc<Self>, near: TcpStream, peer: SocketAddr) {
        let Ok(far) = TcpStream::connect(peer) else { return };
        let (Ok(one), Ok(other)) = (near.try_clone(), far.try_clone()) else {
            return;
        };
        let number = {
            let mut state = self.state.lock();
            if state.is_cut {
                return;
            }
            state.last += 1;
            let number = state.last;
            state.open.insert(number, [one, other]);
            number
        };
        let (Ok(from_near), Ok(from_far)) = (near.try_clone(), far.try_clone()) else {
            return;
        };
        self.carry(number, from_near, far);
        self.carry(number, from_far, near);
    }

    fn carry(self: &Arc<Self>, number: u64, mut from: TcpStream, mut to: TcpStream) {
        let shared = Arc::clone(self);
        thread::spawn(move || {
            let _ = copy(&mut from, &mut to);
            let ended = shared.state.lock().open.remove(&number);
            for stream in ended.iter().flatten() {
                let _ = stream.shutdown(Shutdown::Both);
            }
        });
    }
}
