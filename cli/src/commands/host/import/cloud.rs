//! The hosts of a cloud.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ringfence_core::{Backend, Census, Listed, Newcomer, census, validate_name};

use super::entry::{Entry, Sheet, Wish};
use super::known::Known;
use crate::commands::session::Session;
use crate::error::CliError;
use crate::platforms;

/// How long one call to the cloud may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The options for hosts from a cloud instead of a file.
#[derive(Debug, Args)]
pub struct CloudArgs {
    /// Imports the hosts of Nova in this cloud, an entry of a clouds.yaml, instead of a file
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    cloud: Option<String>,
    /// The clouds.yaml; if absent, it is looked for where OpenStack's own clients look
    #[arg(long, value_name = "FILE", requires = "cloud")]
    clouds_file: Option<PathBuf>,
    /// The segment of new hosts; the default one if absent
    #[arg(long, requires = "cloud")]
    segment: Option<String>,
    /// A prefix for the names of new hosts; if absent, the cloud's name is the prefix where a host's own name is taken
    #[arg(long, requires = "cloud")]
    prefix: Option<String>,
    /// Also deletes hosts of the cloud that Nova does not have; hosts that are FENCED or in an operation stay
    #[arg(long, requires = "cloud")]
    prune: bool,
}

/// Reads the cloud's hosts, and compares them with Ringfence's.
pub async fn sheet(
    args: &CloudArgs,
    hosts: &HashMap<String, Known>,
    session: &mut Session,
) -> Result<Sheet, CliError> {
    let name = args.cloud.as_deref().unwrap_or_default();
    check(args, name, session).await?;
    let platform = platforms::one_cloud(name, args.clouds_file.clone(), TIMEOUT);
    let poll = platform.look().await?;
    let named: Vec<&str> = poll.hosts.iter().map(|sign| sign.host.as_str()).collect();
    if named.is_empty() && args.prune {
        let why = format!(
            "--prune: cloud {name} has no hosts at all, which may be an error of the cloud; nothing is deleted"
        );
        return Err(CliError::Usage(why));
    }
    let listed: Vec<Listed<'_>> = hosts.values().map(listed).collect();
    let census = census(
        (platform.kind(), name),
        args.prefix.as_deref().unwrap_or_default(),
        &named,
        &listed,
    );
    if !census.missing.is_empty() && !args.prune {
        session.screen.note(format!(
            "the cloud does not have {}; --prune deletes what it does not have",
            census.missing.join(", ")
        ));
    }
    Ok(Sheet {
        entries: entries(args, (platform.kind(), name), census, &named, &listed),
        complaints: Vec::new(),
    })
}

/// Checks what does not depend on the single host.
async fn check(args: &CloudArgs, name: &str, session: &Session) -> Result<(), CliError> {
    let words = [
        ("--cloud", Some(name)),
        ("--segment", args.segment.as_deref()),
        ("--prefix", args.prefix.as_deref()),
    ];
    for (flag, word) in words {
        if let Some(Err(problem)) = word.map(|word| validate_name(flag, word)) {
            return Err(CliError::Usage(problem.to_string()));
        }
    }
    let Some(segment) = &args.segment else {
        return Ok(());
    };
    let known = super::known_segments(&session.client).await?;
    if known.contains(segment) {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "--segment: is {segment:?}, and there is no such segment"
    )))
}

fn listed(host: &Known) -> Listed<'_> {
    Listed {
        name: &host.name,
        cloud: host.cloud.as_deref(),
        known_as: host.known_as.as_deref().unwrap_or(&host.name),
    }
}

fn entries(
    args: &CloudArgs,
    (backend, cloud): (Backend, &str),
    census: Census,
    named: &[&str],
    listed: &[Listed<'_>],
) -> Vec<Entry> {
    let wish = |name: String, wish| Entry {
        name,
        wish,
        ..Entry::default()
    };
    let named: BTreeSet<&str> = named.iter().copied().collect();
    let is_there = |host: &&Listed<'_>| host.cloud == Some(cloud) && named.contains(host.known_as);
    let there = listed.iter().filter(is_there);
    let there = there.map(|host| wish(host.name.to_owned(), Wish::Here));
    let new = census
        .new
        .into_iter()
        .map(|host| newcomer(args, (backend, cloud), host));
    let barred = census.barred.into_iter();
    let barred = barred.map(|(host, why)| wish(host, Wish::Barred(why)));
    let gone = census.missing.into_iter().filter(|_| args.prune);
    let gone = gone.map(|host| wish(host, Wish::Gone));
    there.chain(new).chain(barred).chain(gone).collect()
}

fn newcomer(args: &CloudArgs, (backend, cloud): (Backend, &str), host: Newcomer) -> Entry {
    let mut fields = BTreeMap::from([("backend", backend.to_string()), ("cloud", cloud.to_owned())]);
    fields.extend(host.known_as.map(|name| ("known_as", name)));
    fields.extend(args.segment.clone().map(|segment| ("segment", segment)));
    Entry {
        name: host.name,
        fields,
        ..Entry::default()
    }
}
