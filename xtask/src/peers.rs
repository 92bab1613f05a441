//! The peers of a test run and the variables by which the tests find them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ringfence_lab::{CEPH, KUBERNETES, OPENSTACK, OpenStack, OpenStackOptions, PostgreSql, RabbitMq, VM};

use crate::ceph::{self, Ceph};
use crate::error::XtaskError;
use crate::kubernetes::{self, Kubernetes};
use crate::say::say;
use crate::vm::{self, Vm};
use crate::workspace::Workspace;
use crate::{cargo_deb, openstack, packages, page, python};

/// An administrator's address of a PostgreSQL; tests make databases of their own there.
const DATABASE_URL: &str = "RINGFENCE_TEST_DATABASE_URL";
/// The address of a RabbitMQ.
const AMQP_URL: &str = "RINGFENCE_TEST_AMQP_URL";
/// The path of `sushy-emulator`.
const SUSHY: &str = "RINGFENCE_TEST_SUSHY";
/// The path of `keystone-manage`.
const KEYSTONE: &str = "RINGFENCE_TEST_KEYSTONE";
/// The path of a Python; the tools that check the files in `deploy/` are beside it.
const DEPLOY_TOOLS: &str = "RINGFENCE_TEST_DEPLOY_TOOLS";
/// The path of `cargo-deb`.
const CARGO_DEB: &str = "RINGFENCE_TEST_CARGO_DEB";
/// The path of `schemathesis`.
const SCHEMATHESIS: &str = "RINGFENCE_TEST_SCHEMATHESIS";

/// The path of `moto_server`.
const MOTO: &str = "RINGFENCE_TEST_MOTO";

/// The folder in whose `node_modules` the tools are that check the operator's page.
const PAGE_TOOLS: &str = "RINGFENCE_TEST_PAGE_TOOLS";

/// The folder with the parts for `ringfence_lab::OpenStack`.
const OPENSTACK_PARTS: &str = "RINGFENCE_TEST_OPENSTACK_PARTS";

/// How a run uses OpenStack.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OpenStackUse {
    /// Not at all.
    None,
    /// Only its parts: each test that needs an OpenStack starts its own.
    Parts,
    /// So many that run for all tests, of which each process of tests takes one for itself.
    Running(usize),
}

/// The costly peers of a run.
#[derive(Clone, Copy)]
pub struct Wanted {
    pub openstack: OpenStackUse,
    /// The files from which virtual hosts start. Each test starts its own hosts.
    pub vm: bool,
    /// The programs of a Kubernetes. Each test starts its own.
    pub kubernetes: bool,
    /// The programs of a Ceph. Each test starts its own.
    pub ceph: bool,
    /// A browser, and the tools that check the operator's page. Each test starts its own browser.
    pub page: bool,
}

/// The installed parts of peers.
pub struct Parts {
    openstack: Option<PathBuf>,
    use_of_openstack: OpenStackUse,
    no_vm: Option<String>,
    no_kubernetes: Option<String>,
    no_ceph: Option<String>,
    environment: Vec<(&'static str, OsString)>,
}

impl Parts {
    /// Installs missing parts.
    pub fn provide(workspace: &Workspace, wanted: Wanted) -> Result<Self, XtaskError> {
        packages::provide(workspace)?;
        // Kubernetes is compiled, which takes minutes of the processor. The other parts wait for disks and networks.
        std::thread::scope(|scope| {
            let kubernetes = scope.spawn(|| wanted.kubernetes.then(|| kubernetes::provide(workspace)));
            let installed = Self::install(workspace, wanted);
            let kubernetes = kubernetes.join();
            let kubernetes = kubernetes.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok(installed?.with(kubernetes.transpose()?))
        })
    }

    fn install(workspace: &Workspace, wanted: Wanted) -> Result<Self, XtaskError> {
        let emulator = python::provide(workspace, &python::SUSHY)?;
        let keystone = python::provide(workspace, &python::KEYSTONE)?;
        let schemathesis = python::provide(workspace, &python::SCHEMATHESIS)?;
        let moto = python::provide(workspace, &python::MOTO)?;
        let deploy_tools = python::provide(workspace, &python::DEPLOY_TOOLS)?;
        let mut environment = vec![
            (SCHEMATHESIS, schemathesis.into_os_string()),
            (SUSHY, emulator.into_os_string()),
            (MOTO, moto.into_os_string()),
            (KEYSTONE, keystone.into_os_string()),
            (DEPLOY_TOOLS, deploy_tools.into_os_string()),
        ];
        if wanted.page {
            environment.push((PAGE_TOOLS, page::provide(workspace)?.into_os_string()));
        }
        let mut no_vm = None;
        if wanted.vm {
            match vm::provide(workspace)? {
                Vm::There(folder) => environment.push((VM, folder.into_os_string())),
                Vm::Absent(why) => no_vm = Some(why),
            }
        }
        let mut no_ceph = None;
        if wanted.ceph {
            match ceph::provide(workspace)? {
                Ceph::There(folder) => environment.push((CEPH, folder.into_os_string())),
                Ceph::Absent(why) => no_ceph = Some(why),
            }
        }
        let mut openstack = None;
        if wanted.openstack != OpenStackUse::None {
            let parts = openstack::provide(workspace)?;
            environment.push((OPENSTACK_PARTS, parts.clone().into_os_string()));
            openstack = Some(parts);
        }
        // Compiled as well, and small.
        let cargo_deb = cargo_deb::provide(workspace)?;
        environment.push((CARGO_DEB, cargo_deb.into_os_string()));
        Ok(Self {
            openstack,
            use_of_openstack: wanted.openstack,
            no_vm,
            no_kubernetes: None,
            no_ceph,
            environment,
        })
    }

    fn with(mut self, kubernetes: Option<Kubernetes>) -> Self {
        match kubernetes {
            Some(Kubernetes::There(folder)) => self.environment.push((KUBERNETES, folder.into_os_string())),
            Some(Kubernetes::Absent(why)) => self.no_kubernetes = Some(why),
            None => {}
        }
        self
    }

    /// Why there are no virtual hosts although they are wanted.
    pub fn no_vm(&self) -> Option<&str> {
        self.no_vm.as_deref()
    }

    /// Why there is no Kubernetes although it is wanted.
    pub fn no_kubernetes(&self) -> Option<&str> {
        self.no_kubernetes.as_deref()
    }

    /// Why there is no Ceph although it is wanted.
    pub fn no_ceph(&self) -> Option<&str> {
        self.no_ceph.as_deref()
    }
}

/// Running peers. They stop when this value is dropped.
pub struct Peers {
    _postgresql: Option<PostgreSql>,
    _rabbitmq: Option<RabbitMq>,
    _clouds: Vec<OpenStack>,
    environment: Vec<(&'static str, OsString)>,
}

impl Peers {
    /// Starts a PostgreSQL and a RabbitMQ, unless the environment names others, and an OpenStack if it is wanted.
    pub fn start(parts: Parts) -> Result<Self, XtaskError> {
        let mut environment = parts.environment;
        let (postgresql, rabbitmq) = std::thread::scope(|scope| {
            let rabbitmq = scope.spawn(|| unless_given(AMQP_URL, RabbitMq::start));
            let postgresql = unless_given(DATABASE_URL, PostgreSql::start);
            let rabbitmq = rabbitmq
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (postgresql, rabbitmq)
        });
        let (postgresql, rabbitmq) = (postgresql?, rabbitmq?);
        if let Some(server) = &postgresql {
            environment.push((DATABASE_URL, server.url("postgres").into()));
            say(&format!("PostgreSQL is at 127.0.0.1:{}", server.port()));
        }
        if let Some(node) = &rabbitmq {
            environment.push((AMQP_URL, node.url().into()));
            say(&format!("RabbitMQ is at 127.0.0.1:{}", node.port()));
        }
        let clouds = match (&parts.openstack, parts.use_of_openstack) {
            (Some(folder), OpenStackUse::Running(clouds)) => {
                unless_given(OPENSTACK, || start_clouds(folder, clouds))?.unwrap_or_default()
            }
            _ => Vec::new(),
        };
        if !clouds.is_empty() {
            environment.push((OPENSTACK, descriptions(&clouds)?));
        }
        Ok(Self {
            _postgresql: postgresql,
            _rabbitmq: rabbitmq,
            _clouds: clouds,
            environment,
        })
    }

    /// The variables for the tests.
    pub fn environment(&self) -> impl Iterator<Item = (&'static str, &OsString)> {
        self.environment.iter().map(|(name, value)| (*name, value))
    }
}

/// Starts them beside each other: each waits for its services most of the time.
fn start_clouds(parts: &Path, clouds: usize) -> Result<Vec<OpenStack>, XtaskError> {
    std::thread::scope(|scope| {
        let starting: Vec<_> = (0..clouds)
            .map(|_| scope.spawn(|| start_openstack(parts)))
            .collect();
        let started = starting.into_iter().map(|cloud| cloud.join());
        started
            .map(|cloud| cloud.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

fn descriptions(clouds: &[OpenStack]) -> Result<OsString, XtaskError> {
    let files: Result<Vec<_>, _> = clouds.iter().map(OpenStack::write_description).collect();
    Ok(std::env::join_paths(files?)?)
}

fn start_openstack(parts: &Path) -> Result<OpenStack, XtaskError> {
    say("starting OpenStack");
    let begun = std::time::Instant::now();
    let cloud = OpenStack::start(&OpenStackOptions::new(parts))?;
    say(&format!(
        "OpenStack is at {} after {} s",
        cloud.description().auth_url,
        begun.elapsed().as_secs()
    ));
    Ok(cloud)
}

fn unless_given<T, E>(variable: &str, start: impl FnOnce() -> Result<T, E>) -> Result<Option<T>, E> {
    if std::env::var_os(variable).is_some_and(|value| !value.is_empty()) {
        return Ok(None);
    }
    start().map(Some)
}
