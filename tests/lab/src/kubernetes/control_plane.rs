//! A control plane: etcd, the API server, the controller manager and the scheduler.

use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::pki::Pki;
use super::process::Process;
use super::{AuditedCall, ControlPlaneOptions, KubeApi, KubernetesPrograms, audit};
use crate::error::LabError;
use crate::home::{Home, random_password};
use crate::net::{free_tcp_ports, is_open};
use crate::rope::Rope;

/// The first release without plain HTTP ports.
const WITHOUT_PLAIN_PORT: u32 = 24;
/// The first release that reads the scheduler's configuration in version 1.
const SCHEDULER_V1: u32 = 25;
/// What the API server writes down, and where.
const AUDIT_POLICY: &str = "audit-policy.json";
const AUDIT_LIST: &str = "audit.log";
const DEFAULT_ACCOUNT: &str = "/api/v1/namespaces/default/serviceaccounts/default";

/// A process of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// The store of all objects.
    Etcd,
    /// The API server.
    ApiServer,
    /// The controllers, which mark silent nodes and make, delete and detach what belongs together.
    ControllerManager,
    /// The scheduler.
    Scheduler,
}

impl Component {
    const ALL: [Self; 4] = [
        Self::Etcd,
        Self::ApiServer,
        Self::ControllerManager,
        Self::Scheduler,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
        }
    }

    fn index(self) -> usize {
        match self {
            Self::Etcd => 0,
            Self::ApiServer => 1,
            Self::ControllerManager => 2,
            Self::Scheduler => 3,
        }
    }
}

/// Ports on loopback.
#[derive(Debug)]
struct Ports {
    etcd: u16,
    etcd_peers: u16,
    api: u16,
    controllers: u16,
    scheduler: u16,
    scheduler_plain: u16,
}

/// A running control plane without nodes. It ends, and its data with it, when the value is dropped or the owning process dies.
#[derive(Debug)]
pub struct ControlPlane {
    // Dropped in this order.
    processes: [Process; 4],
    api: KubeApi,
    pki: Pki,
    ports: Ports,
    programs: KubernetesPrograms,
    options: ControlPlaneOptions,
    minor: u32,
    /// Keeps the files from outliving the test process while all processes are killed.
    _rope: Rope,
    home: Home,
}

impl ControlPlane {
    /// Starts a control plane, and returns when a pod could be made.
    ///
    /// # Errors
    /// If a program is missing, or does not become ready within two minutes.
    pub fn start(programs: &KubernetesPrograms, options: ControlPlaneOptions) -> Result<Self, LabError> {
        let home = Home::new("k8s")?;
        let [etcd, etcd_peers, api, controllers, scheduler, scheduler_plain] = free_tcp_ports()?;
        let ports = Ports {
            etcd,
            etcd_peers,
            api,
            controllers,
            scheduler,
            scheduler_plain,
        };
        let pki = Pki::new(&home, ports.api)?;
        let token = random_password()?;
        home.write("tokens.csv", &format!("{token},admin,admin,\"system:masters\"\n"))?;
        home.write("admin.kubeconfig", &pki.admin()?)?;
        let process = |component: Component| {
            let name = component.name();
            Process::new(name, programs.path(name), home.path().to_owned())
        };
        let plane = Self {
            processes: Component::ALL.map(process),
            api: KubeApi::new(pki.url(), &pki.certificate(), &token)?,
            pki,
            ports,
            programs: programs.clone(),
            options,
            minor: programs.minor_version()?,
            _rope: Rope::of(home.path())?,
            home,
        };
        plane.authorize()?;
        plane.configure_scheduler(&json!([]))?;
        plane.home.write(AUDIT_POLICY, &audit::policy())?;
        for component in Component::ALL {
            plane.start_again(component)?;
        }
        plane
            .process(Component::ControllerManager)
            .wait(|| plane.api.get(DEFAULT_ACCOUNT).is_ok())?;
        Ok(plane)
    }

    /// A client with an administrator's rights.
    #[must_use]
    pub fn api(&self) -> &KubeApi {
        &self.api
    }

    /// The address of the API server.
    #[must_use]
    pub fn url(&self) -> &str {
        self.pki.url()
    }

    /// The port of the API server on this machine.
    pub(super) fn port(&self) -> u16 {
        self.ports.api
    }

    /// The certificate of the API server's authority in PEM.
    #[must_use]
    pub fn certificate(&self) -> String {
        self.pki.certificate()
    }

    /// An administrator's bearer token.
    #[must_use]
    pub fn token(&self) -> &str {
        self.api.token()
    }

    /// The file of an administrator's kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.home.join("admin.kubeconfig")
    }

    /// The log of a component.
    #[must_use]
    pub fn log(&self, component: Component) -> PathBuf {
        self.process(component).log().clone()
    }

    /// The calls that the API server has written down, the oldest first.
    ///
    /// # Errors
    /// If it writes none down.
    pub fn audited(&self) -> Result<Vec<AuditedCall>, LabError> {
        audit::read(&self.home.join(AUDIT_LIST))
    }

    /// Whether the process of a component runs.
    #[must_use]
    pub fn is_running(&self, component: Component) -> bool {
        self.process(component).is_running()
    }

    /// Kills a component, as a loss of power would.
    pub fn kill(&self, component: Component) {
        self.process(component).kill();
    }

    /// Freezes a component: connections to it stay open, and get no answer.
    ///
    /// # Errors
    /// If the component does not run.
    pub fn pause(&self, component: Component) -> Result<(), LabError> {
        self.process(component).signal(Signal::SIGSTOP)
    }

    /// Thaws a component.
    ///
    /// # Errors
    /// If the component does not run.
    pub fn resume(&self, component: Component) -> Result<(), LabError> {
        self.process(component).signal(Signal::SIGCONT)
    }

    /// Starts a component that was killed, on its former port and with its former data, and waits until it is ready.
    ///
    /// # Errors
    /// If the component does not become ready within two minutes.
    pub fn start_again(&self, component: Component) -> Result<(), LabError> {
        let process = self.process(component);
        process.start(self.arguments(component))?;
        process.wait(|| match component {
            Component::Etcd => is_open(self.ports.etcd),
            Component::ApiServer => self.api.is_ready(),
            Component::ControllerManager => is_open(self.ports.controllers),
            Component::Scheduler => is_open(self.ports.scheduler),
        })
    }

    /// Starts the scheduler anew, with an extender as in `extenders` of a `KubeSchedulerConfiguration`.
    ///
    /// # Errors
    /// If its configuration cannot be written, or it does not become ready within two minutes.
    pub fn extend_scheduler(&self, extender: Value) -> Result<(), LabError> {
        self.configure_scheduler(&json!([extender]))?;
        self.kill(Component::Scheduler);
        self.start_again(Component::Scheduler)
    }

    pub(super) fn pki(&self) -> &Pki {
        &self.pki
    }

    pub(super) fn programs(&self) -> &KubernetesPrograms {
        &self.programs
    }

    pub(super) fn node_grace(&self) -> Duration {
        self.options.node_grace
    }

    fn process(&self, component: Component) -> &Process {
        &self.processes[component.index()]
    }

    fn authorize(&self) -> Result<(), LabError> {
        for component in [Component::ControllerManager, Component::Scheduler] {
            let name = component.name();
            let user = self.pki.user(&format!("system:{name}"), None)?;
            self.home.write(&format!("{name}.kubeconfig"), &user)?;
        }
        Ok(())
    }

    fn configure_scheduler(&self, extenders: &Value) -> Result<(), LabError> {
        let version = if self.minor < SCHEDULER_V1 {
            "v1beta1"
        } else {
            "v1"
        };
        let mut settings = json!({
            "apiVersion": format!("kubescheduler.config.k8s.io/{version}"),
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": self.kubeconfig_of(Component::Scheduler)},
            "leaderElection": {"leaderElect": false},
            "extenders": extenders,
        });
        if self.minor < WITHOUT_PLAIN_PORT {
            for address in ["healthzBindAddress", "metricsBindAddress"] {
                // The plain port cannot be switched off here. Without a port of its own, it would be one for the whole machine.
                settings[address] = format!("127.0.0.1:{}", self.ports.scheduler_plain).into();
            }
        }
        self.home
            .write("scheduler.json", &settings.to_string())
            .map(|_| ())
    }

    fn kubeconfig_of(&self, component: Component) -> String {
        self.home.text(&format!("{}.kubeconfig", component.name()))
    }

    fn arguments(&self, component: Component) -> Vec<String> {
        let mut arguments = match component {
            Component::Etcd => self.etcd(),
            Component::ApiServer => self.api_server(),
            Component::ControllerManager => self.controller_manager(),
            Component::Scheduler => self.scheduler(),
        };
        let more = self.options.arguments.iter().filter(|(of, _)| *of == component);
        arguments.extend(more.map(|(_, argument)| argument.clone()));
        arguments
    }

    fn etcd(&self) -> Vec<String> {
        let clients = format!("http://127.0.0.1:{}", self.ports.etcd);
        let peers = format!("http://127.0.0.1:{}", self.ports.etcd_peers);
        vec![
            "--name=lab".to_owned(),
            format!("--data-dir={}", self.home.text("etcd")),
            // A killed process loses nothing that it wrote; only a loss of the machine's power would need more.
            "--unsafe-no-fsync".to_owned(),
            format!("--listen-client-urls={clients}"),
            format!("--advertise-client-urls={clients}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=lab={peers}"),
        ]
    }

    fn api_server(&self) -> Vec<String> {
        let file = |name| self.home.text(name);
        let mut arguments = vec![
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.ports.api),
            format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd),
            format!("--client-ca-file={}", file("ca.crt")),
            format!("--tls-cert-file={}", file("server.crt")),
            format!("--tls-private-key-file={}", file("server.key")),
            format!("--token-auth-file={}", file("tokens.csv")),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", file("accounts.crt")),
            format!("--service-account-signing-key-file={}", file("accounts.key")),
            "--authorization-mode=Node,RBAC".to_owned(),
            "--enable-admission-plugins=NodeRestriction".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
        ];
        if self.options.is_audited {
            arguments.push(format!("--audit-policy-file={}", file(AUDIT_POLICY)));
            arguments.push(format!("--audit-log-path={}", file(AUDIT_LIST)));
        }
        arguments
    }

    fn controller_manager(&self) -> Vec<String> {
        let mut arguments = self.client_of(Component::ControllerManager, self.ports.controllers);
        arguments.extend([
            format!(
                "--kubeconfig={}",
                self.kubeconfig_of(Component::ControllerManager)
            ),
            "--leader-elect=false".to_owned(),
            "--use-service-account-credentials=true".to_owned(),
            format!(
                "--service-account-private-key-file={}",
                self.home.text("accounts.key")
            ),
            format!("--root-ca-file={}", self.home.text("ca.crt")),
            format!(
                "--node-monitor-grace-period={}ms",
                self.options.node_grace.as_millis()
            ),
            format!("--node-monitor-period={}ms", self.options.node_period.as_millis()),
            format!(
                "--attach-detach-reconcile-sync-period={}ms",
                self.options.volume_sync.as_millis()
            ),
        ]);
        if self.minor < WITHOUT_PLAIN_PORT {
            arguments.push("--port=0".to_owned());
        }
        arguments
    }

    fn scheduler(&self) -> Vec<String> {
        let mut arguments = self.client_of(Component::Scheduler, self.ports.scheduler);
        arguments.push(format!("--config={}", self.home.text("scheduler.json")));
        arguments
    }

    fn client_of(&self, component: Component, port: u16) -> Vec<String> {
        let kubeconfig = self.kubeconfig_of(component);
        vec![
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            format!("--cert-dir={}", self.home.text(component.name())),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
        ]
    }
}
