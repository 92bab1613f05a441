//! Stories with a real Kubernetes.

mod leaders;
mod member;
mod node_fence;
mod plant;
mod remediation;
