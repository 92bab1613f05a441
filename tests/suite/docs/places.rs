//! The machines on which the commands of the pages run.

mod peers;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ringfence_lab::{Authority, IpmiBmc};
use ringfence_tests::pages::Shell;
use ringfence_tests::{
    Behaviour, Client, Machine, Receiver, Service, eventually, set_up, start_engine, start_worker,
};

use peers::{OwnPeers, free_port};

/// The address of the API in the pages.
const API: &str = "127.0.0.1:8790";
/// The address of the simulated world in the pages.
const SIMULATORS: &str = "127.0.0.1:41235";

/// A machine and its services.
pub struct Place {
    // Dropped in this order: services before their peers, and before their logs.
    _services: Vec<Service>,
    _peers: Option<OwnPeers>,
    _bmc: Option<IpmiBmc>,
    _receiver: Option<Receiver>,
    machine: Machine,
    /// Texts of the pages, and their replacements in this run.
    here: Vec<(&'static str, String)>,
}

impl Place {
    fn new(machine: Machine) -> Self {
        Self {
            machine,
            here: Vec::new(),
            _services: Vec::new(),
            _peers: None,
            _bmc: None,
            _receiver: None,
        }
    }

    pub fn shell(&self) -> Shell {
        let mut shell = Shell::open(&self.machine);
        for (shown, real) in &self.here {
            shell.means(shown, real);
        }
        shell
    }
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A machine whose worker has the name that the pages show, and whose services take any free port.
fn machine() -> Machine {
    Machine::new()
        .set("RINGFENCE_STANDALONE_LISTEN", "127.0.0.1:0")
        .set("RINGFENCE_API_LISTEN", "127.0.0.1:0")
        .set("RINGFENCE_WORKER_NAME", "vm")
        .set("SOURCES", sources().display().to_string())
}

/// Puts a script into the `PATH` of the machine.
fn script(machine: &Machine, name: &str, text: &str) {
    let bin = machine.file("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let path = bin.join(name);
    std::fs::write(&path, format!("#!/bin/bash\nset -euo pipefail\n{text}")).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// A machine with the sources and without services. `cargo` has nothing to build: the program is the tested one.
pub fn newcomer() -> Place {
    Place::new(with_cargo(machine()))
}

fn with_cargo(machine: Machine) -> Machine {
    let program = Machine::program();
    let cargo = format!(
        "case \"$*\" in\n'build --release') ;;\n'run --release -- '*) shift 3; exec '{}' \"$@\" ;;\n\
         *) echo \"cargo $*: not supported here\"; exit 1 ;;\nesac\n",
        program.display()
    );
    script(&machine, "cargo", &cargo);
    let release = machine.file("target/release");
    std::fs::create_dir_all(&release).unwrap();
    std::os::unix::fs::symlink(&program, release.join("ringfence")).unwrap();
    machine
}

/// A machine like `newcomer`, with a file of tokens that the configuration names.
pub fn control_plane() -> Place {
    let machine = machine();
    let tokens = machine.file("tokens.toml").display().to_string();
    Place::new(machine.set("RINGFENCE_API_TOKENS_FILE", tokens))
}

/// `standalone --demo`, with all hosts seen, and a receiver for its webhooks.
pub async fn demo() -> Place {
    let machine = machine()
        .set("RINGFENCE_WEBHOOKS_ALLOWED_NETWORKS", "127.0.0.0/8")
        .set("RINGFENCE_CHECKS_INTERVAL_S", "10");
    let receiver = Receiver::start(Behaviour::Takes);
    let mut service = machine.start("demo", &["standalone", "--demo"]);
    let url = service.until_it_listens("ready").await;
    let printed = service.printed();
    let (_, rest) = printed.split_once("curl -X PUT http://").unwrap();
    let simulators = rest.split('/').next().unwrap().to_owned();
    let token = std::fs::read_to_string(machine.file(".local/share/ringfence/admin.token")).unwrap();
    let client = Client::new(&url, Some(token.trim()));
    for host in 1..=6 {
        eventually(async || client.host(&format!("sim-{host}")).await["failure_state"] == "UP").await;
    }
    let machine = machine.set("SIM", format!("http://{simulators}"));
    Place {
        here: vec![
            (API, url.replace("http://", "")),
            (SIMULATORS, simulators),
            ("https://pager.example.org/ringfence", receiver.url()),
            ("/var/backups", machine.path().display().to_string()),
        ],
        _services: vec![service],
        _receiver: Some(receiver),
        ..Place::new(machine)
    }
}

/// A Debian machine with PostgreSQL and RabbitMQ, both just installed.
pub async fn fresh_server() -> Place {
    let peers = OwnPeers::start().await;
    let machine = with_cargo(machine());
    peers.give_commands(&machine, &peers.as_installed().await);
    Place {
        here: vec![
            ("127.0.0.1:5432", format!("127.0.0.1:{}", peers.postgres.port())),
            ("127.0.0.1:5672", format!("127.0.0.1:{}", peers.rabbit.port())),
            ("9001", free_port().to_string()),
        ],
        _peers: Some(peers),
        ..Place::new(machine)
    }
}

/// An installation with TLS, as the deployment guide makes it, and an IPMI BMC.
pub async fn installation() -> Place {
    let peers = OwnPeers::start().await;
    let site = peers.site().await;
    let (machine, token) = set_up(&site).await;
    let bmc = tokio::task::spawn_blocking(|| IpmiBmc::start().unwrap())
        .await
        .unwrap();
    let authority = Authority::new().unwrap();
    let issued = authority.issue(&["localhost"]).unwrap();
    let write = |name: &str, text: &str, mode: u32| {
        let path = machine.file(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path.display().to_string()
    };
    let certificate = write("api.pem", &issued.certificate, 0o644);
    let key = write("api.key", &issued.key, 0o600);
    write("ca.pem", &authority.certificate(), 0o644);
    write("alice.token", &token, 0o600);
    let machine = machine
        .set("RINGFENCE_API_CERTIFICATE_FILE", certificate)
        .set("RINGFENCE_API_KEY_FILE", key)
        .set("RINGFENCE_WORKER_ZONES", "dc-1");
    peers.give_commands(&machine, &peers.postgres.url("postgres"));
    let mut api = machine.start("api", &["api", "--listen", "127.0.0.1:0"]);
    let url = api.until_it_listens("the API listens").await;
    let mut worker = start_worker(&machine, "vm");
    worker.until_says(&["the worker serves"]).await;
    let address = "address=127.0.0.1 -p cipher=3".to_owned();
    let own = format!("--zone dc-1 -p bmc.port={}", bmc.port());
    Place {
        here: vec![
            (
                "https://fencing.example:8790",
                url.replace("http://127.0.0.1", "https://localhost"),
            ),
            ("'address=${host.name}.bmc.example'", address),
            ("--zone dc-1", own),
            ("username=fence", format!("username={}", IpmiBmc::USER)),
            ("/etc/ringfence", machine.file("etc").display().to_string()),
        ],
        _services: vec![api, worker, start_engine(&machine, "engine-1")],
        _peers: Some(peers),
        _bmc: Some(bmc),
        ..Place::new(machine)
    }
}
