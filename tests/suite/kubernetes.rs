//! Stories with a real Kubernetes.

mod member;
mod node_fence;
mod plant;
mod remediation;
