//! Services that are WSGI applications.

use crate::openstack::program::Program;

/// `uwsgi` with this application on a loopback port, in one process.
pub(crate) fn program(application: &str, port: u16) -> Program {
    let words = [
        "--plugin",
        "python3",
        "--die-on-term",
        "--need-app",
        "--enable-threads",
        "--threads",
        "8",
        "--buffer-size",
        "65535",
        "--disable-logging",
        // A kept connection would be closed without notice, and the client's next request would fail.
        "--add-header",
        "Connection: close",
        "--http-socket",
    ];
    Program::new("/usr/bin/uwsgi-core")
        .arguments(words.map(str::to_owned))
        .arguments([
            format!("127.0.0.1:{port}"),
            "--wsgi-file".to_owned(),
            application.to_owned(),
        ])
}
