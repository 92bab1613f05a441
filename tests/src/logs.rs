//! The logs of services that run in the test's own process: printed with a test that fails.

use std::io::stdout;

use tracing_subscriber::EnvFilter;

/// Shows what an operator would see, or what `RUST_LOG` names.
pub(crate) fn show() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("error,ringfence=info"));
    let shown = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(stdout);
    // Fails where the test has started a stack before this one: its logs are shown already.
    let _ = shown.try_init();
}
