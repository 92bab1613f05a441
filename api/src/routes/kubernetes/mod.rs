//! What Kubernetes asks: its scheduler before it binds a pod, its API server before it removes something.

pub(crate) mod admission;
pub(crate) mod filter;
