//! Real peers on loopback for tests: PostgreSQL, RabbitMQ, an IPMI BMC, a Redfish service, Pacemaker's fencer, a Ceph, an AWS, a Keystone, a
//! whole OpenStack, a Kubernetes with nodes that die, a browser, and hosts that really write, freeze and die.
//!
//! Each peer has files, ports and credentials of its own, apart from services that the machine runs anyway, and each can be stopped,
//! crashed and started again. Dropping a peer's value stops the peer and removes its files, and so does the death of the process that
//! owns the value, by any signal.
//!
//! All calls block; an async test starts its peers through `spawn_blocking` or before its runtime.

mod aws;
mod browser;
mod button;
mod ceph;
mod certificates;
mod cloud;
mod error;
mod home;
mod instance_metadata;
mod ipmi;
mod kdump;
mod keystone;
mod kubernetes;
mod leash;
mod net;
mod openstack;
mod pacemaker;
mod postgres;
mod programs;
mod prometheus;
mod rabbitmq;
mod redfish;
mod rope;
mod vm;

pub use aws::{Aws, MOTO};
pub use browser::ChromeDriver;
pub use ceph::{CEPH, Ceph, CephClient, CephPrograms, CephWriter};
pub use certificates::{Authority, Issued};
pub use cloud::{
    Answer, Api, BaremetalNode, Call, Change, Cloud, Compute, ComputeService, Description, Domain, Migration,
    NewServer, Notification, NovaApi, NovaApiOptions, OPENSTACK, Paused, Port, Server, User, Volume,
    VolumeAttachment, WsgiFilter,
};
pub use error::LabError;
pub use instance_metadata::serve_instance_metadata;
pub use ipmi::{IpmiBmc, IpmiFault};
pub use kdump::KdumpSender;
pub use keystone::{KEYSTONE_PASSWORD, Keystone, KeystoneOptions};
pub use kubernetes::{
    Attacher, AuditedCall, CSI_DRIVER, Component, ContainerRun, ControlPlane, ControlPlaneOptions,
    KUBERNETES, KubeApi, KubeUser, Kubelet, KubeletOptions, KubernetesPrograms, OutOfService, make_volumes,
    running_twice, stateful_set,
};
pub use openstack::{
    HOOK_CLOUD, HOOK_TOKEN, MasakariSettings, OPENSTACK_PASSWORD, OpenStack, OpenStackOptions, Services,
};
pub use pacemaker::Fencer;
pub use postgres::PostgreSql;
pub use programs::{POSTGRESQL_PROGRAMS, find_postgresql, find_program, rabbitmq_folder};
pub use prometheus::{Alertmanager, Prometheus};
pub use rabbitmq::RabbitMq;
pub use redfish::{REDFISH_PASSWORD, REDFISH_USER, Redfish};
pub use rope::Rope;
pub use vm::{Landed, Record, VM, VmAddress, VmHost, VmImage, VmStore};
