//! What `ringfence standalone` prints on its start: its address, and the next steps.

use std::io::Write;
use std::path::Path;

use crate::config::{Environment, data_dir as default_data_dir};
use crate::error::CliError;

use super::home;

/// The path of this program.
pub fn program() -> String {
    std::env::current_exe().map_or_else(|_| "ringfence".to_owned(), |path| path.display().to_string())
}

/// The variable that has to be set so that the commands find the service. Commands look where the environment says, and do not know a
/// directory that a flag or a file has named.
pub fn find_commands(data_dir: &Path) -> String {
    let is_found = default_data_dir(&Environment::of_this_process()).is_some_and(|found| found == data_dir);
    if is_found {
        String::new()
    } else {
        format!("  export RINGFENCE_DATA_DIR={}\n", data_dir.display())
    }
}

/// Prints the first steps, or the steps for a service that has hosts.
pub fn say_what_to_do(data_dir: &Path, url: &str, has_hosts: bool) -> Result<(), CliError> {
    let next = if has_hosts { AGAIN } else { FIRST };
    write!(
        std::io::stdout(),
        "
Ringfence runs on {url} (API description: {url}/docs), with its data in {data}.
The operator's page is at {url}/dashboard; it asks for a token, and the first one is in {data}/{token_file}.

In another terminal{more}:

  R={program}
{find}{next}
Stop it with Ctrl-C; started again, even after kill -9, it goes on where it was.

",
        data = data_dir.display(),
        token_file = home::ADMIN_TOKEN,
        more = if has_hosts {
            ""
        } else {
            ", tell it how your hosts are fenced"
        },
        program = program(),
        find = find_commands(data_dir),
    )?;
    Ok(())
}

/// The steps without hosts.
const FIRST: &str = "  \
  # a method: a device, and how to speak to it (the password is in a file that only the service can read)
  $R method add bmc --resource power --driver ipmi -p 'address=${host.name}-bmc' -p username=fence -s password=file:/PATH
  # a plan: which methods fence which hosts
  $R plan add --file plan.toml
  # a host, and whether its device answers (nothing is switched)
  $R host add node-1
  $R method check bmc --host node-1
  # whether each host can be fenced, and by what
  $R doctor
  # or six simulated hosts to try it with, on a data directory of their own
  $R standalone --demo --data-dir ~/ringfence-demo --listen 127.0.0.1:8791
";

/// The steps with hosts.
const AGAIN: &str = "  \
  $R host list
  # whether each host can be fenced, and by what
  $R doctor
";
