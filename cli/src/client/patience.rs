//! Repeats a request when the service asks for that.

use std::time::Duration;

use super::{Answer, Client, Request};
use crate::error::CliError;

/// How often a request is sent at most.
const TRIES: u32 = 10;
/// The longest wait between two tries.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

impl Client {
    /// Like [`Client::send`]. If the service asks for a later request (429 and 503), waits that long and repeats the request, ten times at
    /// most. `tell` is called with the reason of each wait.
    pub async fn send_patiently(
        &self,
        request: Request<'_>,
        tell: impl Fn(String),
    ) -> Result<Answer, CliError> {
        for left in (1..TRIES).rev() {
            let fault = match self.send(request.clone()).await {
                Err(CliError::Api(fault)) => fault,
                done => return done,
            };
            let Some(wait) = fault.wait() else {
                return Err(CliError::Api(fault));
            };
            let wait = wait.min(LONGEST_WAIT);
            let (title, seconds) = (fault.title(), wait.as_secs());
            tell(format!(
                "{title}: the service asks to wait; the next try of {left} is in {seconds} s"
            ));
            tokio::time::sleep(wait).await;
        }
        self.send(request).await
    }
}
