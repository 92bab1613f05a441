//! From the request to FENCED.

mod heard;
mod on_paper;
mod stages;
mod sufficient;
mod workers;
