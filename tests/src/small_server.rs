//! An HTTP server on this machine that does what a test needs of it.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::web::ServiceConfig;
use actix_web::{App, HttpServer};

/// Longer than the 90 s after which the clients that call it close an idle connection.
const IDLE: Duration = Duration::from_secs(100);

/// It serves on a thread of its own, as long as it is kept.
pub(crate) struct SmallServer {
    pub address: SocketAddr,
    handle: ServerHandle,
}

impl SmallServer {
    pub fn start(
        listener: TcpListener,
        configure: impl Fn(&mut ServiceConfig) + Clone + Send + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let (sender, handle) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let app = move || App::new().configure(configure.clone());
                let server = HttpServer::new(app).workers(1).keep_alive(IDLE).disable_signals();
                let server = server.listen(listener).unwrap().run();
                sender.send(server.handle()).unwrap();
                server.await.unwrap();
            });
        });
        let handle = handle.recv().unwrap();
        Self { address, handle }
    }

    /// A port that nothing else has.
    pub fn port() -> TcpListener {
        TcpListener::bind("127.0.0.1:0").unwrap()
    }
}

impl Drop for SmallServer {
    fn drop(&mut self) {
        drop(self.handle.stop(false));
    }
}
