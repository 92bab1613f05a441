//! Stories with a real Kubernetes.

mod admission;
mod gates;
mod member;
mod plant;
