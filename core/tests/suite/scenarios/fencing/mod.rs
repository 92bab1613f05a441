//! From the request for a fence to FENCED.

mod heard;
mod on_paper;
mod stages;
mod sufficient;
mod workers;
