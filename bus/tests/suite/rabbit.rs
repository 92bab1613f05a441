//! A RabbitMQ node that belongs to one test: on loopback, with its own port mapper, cookie and folders, removed with the test.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;

const SERVER: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
/// The beginning of an AMQP frame with a method, such as a broker's first frame.
const METHOD_FRAME: u8 = 1;
const START_TIMEOUT: Duration = Duration::from_secs(90);

/// The shell ends with the test (at the end of its input) and with the node, and kills the whole process group.
const SCRIPT: &str = "epmd -port $ERL_EPMD_PORT -address 127.0.0.1 & \"$0\" & cat >/dev/null; kill -KILL 0";

/// A node that can be killed and started again with its data.
pub struct Rabbit {
    folder: TempDir,
    ports: [u16; 3],
    group: Option<Child>,
}

impl Rabbit {
    /// Starts a node, which takes some seconds. `None` if RabbitMQ is not installed.
    pub fn start() -> Option<Self> {
        let mut rabbit = Self::stopped()?;
        rabbit.go();
        Some(rabbit)
    }

    /// A node that is not started.
    pub fn stopped() -> Option<Self> {
        Path::new(SERVER).exists().then(|| {
            let folder = tempfile::Builder::new()
                .prefix("ringfence-rabbit-")
                .tempdir()
                .unwrap();
            Self {
                folder,
                ports: free_ports(),
                group: None,
            }
        })
    }

    pub fn url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}/%2F", self.ports[0])
    }

    /// A node that also serves TLS, with its address and the certificate to trust, as PEM.
    pub fn start_with_tls() -> Option<(Self, String, String)> {
        let mut rabbit = Self::stopped()?;
        let path = |name: &str| rabbit.folder.path().join(name).display().to_string();
        let [port, ..] = free_ports();
        let (certificate, key) = (path("certificate.pem"), path("key.pem"));
        let made = Command::new("openssl")
            .args("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost".split(' '))
            .args([
                "-addext",
                "subjectAltName=IP:127.0.0.1",
                "-addext",
                "basicConstraints=critical,CA:FALSE",
            ])
            .args(["-keyout", &key, "-out", &certificate])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let config = format!(
            "listeners.ssl.1 = 127.0.0.1:{port}\nssl_options.certfile = {certificate}\nssl_options.keyfile = {key}\n"
        );
        std::fs::write(path("tls.conf"), config).unwrap();
        let pem = std::fs::read_to_string(certificate).unwrap();
        rabbit.go();
        Some((rabbit, format!("amqps://guest:guest@127.0.0.1:{port}/%2F"), pem))
    }

    /// Starts the node and waits until it accepts connections.
    pub fn go(&mut self) {
        assert!(self.group.is_none(), "the node runs already");
        self.group = Some(self.spawn());
        let deadline = Instant::now() + START_TIMEOUT;
        while !self.speaks() {
            assert!(
                Instant::now() < deadline,
                "the broker did not start within {START_TIMEOUT:?}: {}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Whether the node answers the AMQP greeting: its port is open before that, and a client of an unused port may connect to itself.
    fn speaks(&self) -> bool {
        let greeted = || {
            let mut stream = TcpStream::connect(("127.0.0.1", self.ports[0]))?;
            stream.set_read_timeout(Some(Duration::from_secs(2)))?;
            stream.write_all(b"AMQP\x00\x00\x09\x01")?;
            let mut frame = [0];
            stream.read_exact(&mut frame)?;
            Ok::<_, std::io::Error>(frame == [METHOD_FRAME])
        };
        greeted().unwrap_or(false)
    }

    /// Waits until the node has stored its list of queues, up to half a second after it has confirmed a queue. A node that is killed before
    /// that has lost the queue, unless other nodes know it.
    pub async fn settled(&self) {
        tokio::time::sleep(Duration::from_secs(2)).await;
    }

    /// Kills the node, as a power cut would.
    pub fn kill(&mut self) {
        if let Some(mut group) = self.group.take() {
            let id = Pid::from_raw(i32::try_from(group.id()).unwrap());
            let _ = killpg(id, Signal::SIGKILL);
            let _ = group.wait();
        }
    }

    fn spawn(&self) -> Child {
        use std::os::unix::process::CommandExt;
        let [amqp, distribution, mapper] = self.ports;
        let path = |name: &str| self.folder.path().join(name);
        let config = format!("listeners.tcp.1 = 127.0.0.1:{amqp}\nlog.console = false\n");
        let tls = std::fs::read_to_string(path("tls.conf")).unwrap_or_default();
        std::fs::write(path("rabbitmq.conf"), config + &tls).unwrap();
        std::fs::write(path("plugins"), "[].\n").unwrap();
        std::fs::write(path("env.conf"), "").unwrap();
        let log = || {
            std::fs::File::options()
                .create(true)
                .append(true)
                .open(path("out.log"))
                .unwrap()
        };
        Command::new("sh")
            .args(["-c", SCRIPT, SERVER])
            .env("HOME", self.folder.path())
            .env("ERL_EPMD_PORT", mapper.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODENAME", format!("ringfence-{amqp}@localhost"))
            .env("RABBITMQ_DIST_PORT", distribution.to_string())
            .env("RABBITMQ_CONF_ENV_FILE", path("env.conf"))
            .env("RABBITMQ_CONFIG_FILE", path("rabbitmq.conf"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", path("plugins"))
            .env("RABBITMQ_MNESIA_BASE", path("data"))
            .env("RABBITMQ_LOG_BASE", path("log"))
            .env("RABBITMQ_PID_FILE", path("pid"))
            .env(
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1 +sbwt none",
            )
            .stdin(Stdio::piped())
            .stdout(log())
            .stderr(log())
            .process_group(0)
            .spawn()
            .unwrap()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("out.log")).unwrap_or_default()
    }
}

impl Drop for Rabbit {
    fn drop(&mut self) {
        self.kill();
    }
}

fn free_ports() -> [u16; 3] {
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}
