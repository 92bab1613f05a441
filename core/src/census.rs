//! Which hosts of a cloud are on record, and how those that are not would be called.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Backend, validate_name};

/// A host on record, as far as it matters where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed<'a> {
    /// Its name, unique among all hosts.
    pub name: &'a str,
    /// Its cloud; none if its record has no cloud.
    pub cloud: Option<&'a str>,
    /// What its cloud calls it.
    pub known_as: &'a str,
}

/// A host of the cloud that is not on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newcomer {
    /// What it would be called here.
    pub name: String,
    /// What the cloud calls it, where that is another name.
    pub known_as: Option<String>,
}

/// What a cloud names, beside what is on record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Hosts that could be added.
    pub new: Vec<Newcomer>,
    /// Hosts that cannot be, as the cloud calls them, and why not.
    pub barred: Vec<(String, String)>,
    /// The names of hosts on record that the cloud does not name.
    pub missing: Vec<String>,
}

/// Compares what `cloud` names with what is on record of all hosts.
///
/// Host names are unique within one cloud only: where a host of another cloud has the name already, the cloud's own goes before it.
/// A host on record without a cloud may be this machine: it is left to a person.
#[must_use]
pub fn census(
    (backend, cloud): (Backend, &str),
    prefix: &str,
    named: &[&str],
    listed: &[Listed<'_>],
) -> Census {
    let mut names: BTreeMap<String, Option<&str>> = listed
        .iter()
        .map(|host| (host.name.to_owned(), host.cloud))
        .collect();
    let here = listed.iter().filter(|host| host.cloud == Some(cloud));
    let known: BTreeMap<&str, &str> = here.map(|host| (host.known_as, host.name)).collect();
    let named: BTreeSet<&str> = named.iter().copied().collect();
    let mut census = Census::default();
    for host in named.iter().filter(|host| !known.contains_key(*host)) {
        match name_for((backend, cloud), prefix, host, &names) {
            Ok(name) => {
                names.insert(name.clone(), Some(cloud));
                census.new.push(Newcomer {
                    known_as: (name != **host).then(|| (*host).to_owned()),
                    name,
                });
            }
            Err(why) => census.barred.push(((*host).to_owned(), why)),
        }
    }
    let missing = known.iter().filter(|(known_as, _)| !named.contains(*known_as));
    census.missing = missing.map(|(_, name)| (*name).to_owned()).collect();
    census
}

fn name_for(
    (backend, cloud): (Backend, &str),
    prefix: &str,
    host: &str,
    names: &BTreeMap<String, Option<&str>>,
) -> Result<String, String> {
    let wanted = format!("{prefix}{host}");
    let in_no_cloud = |name: &str| matches!(names.get(name), Some(None));
    if let Some(same) = [host, wanted.as_str()].into_iter().find(|name| in_no_cloud(name)) {
        return Err(format!(
            "there is a host {same:?} of no cloud, which may be this host; if it is, give it backend {backend} and cloud {cloud:?}"
        ));
    }
    let with_cloud = format!("{cloud}-{host}");
    let free = [wanted, with_cloud]
        .into_iter()
        .find(|name| !names.contains_key(name));
    let Some(name) = free else {
        return Err("its name is taken, also with the cloud's before it".to_owned());
    };
    // What the cloud calls it is kept as a name as well.
    validate_name("known_as", host)
        .and_then(|()| validate_name("name", &name))
        .map_err(|problem| problem.to_string())?;
    Ok(name)
}
