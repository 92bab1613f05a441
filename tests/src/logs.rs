//! What the services that run within a test's own process have to say: shown with a test that has failed.

use std::io::stdout;

use tracing_subscriber::EnvFilter;

/// As much as an operator would see, or what `RUST_LOG` names.
pub(crate) fn show() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("error,ringfence=info"));
    let shown = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(stdout);
    // It is shown already where a test starts more than one stack.
    let _ = shown.try_init();
}
