//! Whether what the database says holds, where it is a cache that another process may have overtaken.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

type Confirm = dyn Fn() -> Confirming + Send + Sync;
type Confirming = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Makes certain that what the database said before the call holds at a moment after the call; or says why it does not.
#[derive(Clone)]
pub struct Confirmation(Arc<Confirm>);

impl Confirmation {
    /// Confirms by this.
    pub fn new(confirm: impl Fn() -> Confirming + Send + Sync + 'static) -> Self {
        Self(Arc::new(confirm))
    }

    pub(crate) async fn get(&self) -> Result<(), String> {
        (self.0)().await
    }
}

impl Default for Confirmation {
    /// A database that is the truth.
    fn default() -> Self {
        Self::new(|| Box::pin(async { Ok(()) }))
    }
}

impl fmt::Debug for Confirmation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Confirmation").finish_non_exhaustive()
    }
}
