//! A real Kubernetes control plane, and nodes that have a real kubelet but no containers.
//!
//! Each test starts a cluster of its own: an empty one is ready after some seconds.

mod api;
mod attacher;
mod audit;
mod control_plane;
mod host;
mod kubelet;
mod line;
mod node_views;
mod options;
mod out_of_service;
mod pki;
mod process;
mod programs;
mod runs;
mod users;
mod workload;

pub use api::KubeApi;
pub use attacher::Attacher;
pub use audit::AuditedCall;
pub use control_plane::{Component, ControlPlane};
pub use kubelet::Kubelet;
pub use options::{ControlPlaneOptions, KubeletOptions};
pub use out_of_service::OutOfService;
pub use programs::{KUBERNETES, KubernetesPrograms};
pub use runs::{ContainerRun, running_twice};
pub use users::KubeUser;
pub use workload::{CSI_DRIVER, make_volumes, stateful_set};
