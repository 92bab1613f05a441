//! The driver `heartbeat-file`: a directory on a shared storage in which each host has a file whose content it changes again and again.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use ringfence_core::{Declaration, Heartbeat, Parameter, Parameters, Resource};
use uuid::Uuid;

use super::{ALLOWED_PATH, HOST, are_seconds, direct, needed, silent_after, thread, unclear};
use crate::WorkerError;
use crate::drivers::Entry;

/// Bytes of a file that are read; a heartbeat has to change one of them.
const MOST_BYTES: usize = 4_096;
const DIRECTORY: &str = "directory";

pub(in crate::drivers) static DRIVER: Entry = Entry {
    declaration: Declaration {
        name: "heartbeat-file",
        about: "a directory on a shared storage, with a file of each host whose content it changes",
        resources: &[Resource::Heartbeat],
        parameters: &[
            Parameter::required(DIRECTORY, "the directory, as the worker has it mounted")
                .says_where()
                .allowing(ALLOWED_PATH, |path| path.starts_with('/')),
            Parameter::optional(
                HOST,
                "the name of the host's file, where that is not the name by which its platform knows it",
            )
            .or_of_host()
            .tells_apart()
            .allowing(
                "the name of a file is allowed, without a slash and a dot at its beginning",
                is_file_name,
            ),
            silent_after("60", "15 to 3600 is allowed", |text| are_seconds(text, 15)),
        ],
        secrets: &[],
        others: None,
        place: None,
        lingers_s: 0,
        device: |_| None,
        can_prove: |_| false,
    },
    make: |settings| Arc::new(thread::driver(read, settings)),
};

fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains('/')
}

fn read(parameters: &Parameters, hosts: &[String]) -> Result<BTreeMap<String, Heartbeat>, WorkerError> {
    let directory = Path::new(needed(parameters, DIRECTORY)?);
    let is_there = directory.metadata().is_ok_and(|found| found.is_dir());
    if !is_there {
        return Err(WorkerError::unclear(format!(
            "{} is no directory that can be read",
            directory.display()
        )));
    }
    let of = |host: &String| (host.clone(), heartbeat(directory, host));
    Ok(hosts.iter().map(of).collect())
}

fn heartbeat(directory: &Path, host: &str) -> Heartbeat {
    if !is_file_name(host) {
        return unclear(format!("{host:?} is no name of a file"));
    }
    let path = directory.join(host);
    let content = path.metadata().and_then(|found| {
        if found.len() > MOST_BYTES as u64 {
            Err(io::Error::other(format!(
                "it has {} bytes; at most {MOST_BYTES} are read",
                found.len()
            )))
        } else if found.is_file() {
            direct::read_start(&path, MOST_BYTES)
        } else {
            Err(io::Error::other("it is no file"))
        }
    });
    match content {
        // A file is empty while it is written anew.
        Ok(content) if content.is_empty() => unclear(format!("{} is empty", path.display())),
        Ok(content) => Heartbeat::Written {
            writer: host.to_owned(),
            mark: Uuid::new_v5(&Uuid::NAMESPACE_OID, &content).to_string(),
        },
        Err(error) => unclear(format!("{} cannot be read: {error}", path.display())),
    }
}
