//! Stories with a real Kubernetes.

mod leaders;
mod admission;
mod gates;
mod member;
mod node_fence;
mod plant;
mod remediation;
