//! `ringfence segment`.

/// `ringfence segment ...`
#[derive(Debug, clap::Subcommand)]
pub enum SegmentCommand {
    /// Lists them
    List,
}
