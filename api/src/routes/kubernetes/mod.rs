//! What Kubernetes asks: its scheduler before it binds a pod.

pub(crate) mod filter;
