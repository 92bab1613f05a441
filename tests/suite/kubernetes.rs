//! Stories with a real Kubernetes.

mod admission;
mod gates;
mod leaders;
mod member;
mod node_fence;
mod plant;
mod remediation;
