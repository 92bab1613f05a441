//! Stories with a real Kubernetes.

mod member;
mod plant;
