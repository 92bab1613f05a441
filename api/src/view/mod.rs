//! What the API shows: one file per kind of thing.

pub(crate) mod audit;
pub(crate) mod event;
pub(crate) mod explanation;
pub(crate) mod gates;
pub(crate) mod host;
pub(crate) mod method;
pub(crate) mod method_check;
pub(crate) mod moves;
pub(crate) mod operation;
pub(crate) mod overview;
pub(crate) mod plan;
pub(crate) mod problems;
pub(crate) mod safeguard;
pub(crate) mod segment;
pub(crate) mod services;
pub(crate) mod session;
mod shown;
pub(crate) mod subscription;
pub(crate) mod suspension;
