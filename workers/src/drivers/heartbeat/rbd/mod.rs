//! The driver `rbd-watch`: who has an image of a Ceph open, by the program `rados`.
//!
//! A client that opens an image to write to it registers a watch with the OSD that serves the image's header, and renews it every 5 s. The OSD drops a watch that is not
//! renewed for 30 s (`osd_client_watch_timeout`), and those of clients on the blocklist at once. So a watch that is there was renewed within that time. That is all that it
//! says: nothing in it changes while it is renewed.
//!
//! It holds only while one OSD goes on counting. Where another one takes over, or one begins anew, each watch that is on record gets the whole time once more, from the first
//! question about the image on (`PrimaryLogPG::populate_obc_watchers` in Ceph's source). So a watch counts only where the OSDs that serve the image have been the ones they are for longer than
//! that, and have answered all along. A host that dies and takes the OSD of the image with it would look alive for a minute otherwise, and that after its fence.

mod interval;
mod watches;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use parking_lot::Mutex;
use ringfence_backends::{ALLOWED_ADDRESSES, Addresses};
use ringfence_bus::ValidateRequest;
use ringfence_core::{
    Declaration, FrozenMethod, Heartbeat, Parameter, Problem, Resource, error_chain, value_of,
};
use tokio::sync::Mutex as Turn;
use tokio::time::Instant;

use self::interval::{Interval, Placed, interval};
use self::watches::{Watch, header_of, parse};
use super::addresses::{by_addresses, has};
use super::{Answer, HOST, Reads, Storage, are_seconds, needed, silent_after, unclear};
use crate::drivers::Entry;
use crate::drivers::ceph::program::{Ceph, last_line, with_keys};
use crate::drivers::ceph::{CONF_FILE, KEYRING, MONITORS, NAMESPACE, ROOK, Reached, USER};
use crate::process::{Ended, ProcessError};
use crate::{Secrets, WorkerError};

const POOL: &str = "pool";
const IMAGES: &str = "images";
const WATCH_TIMEOUT: &str = "watch_timeout_s";
/// As Ceph has it.
const WATCH_TIMEOUT_S: u32 = 30;
/// Images of one method: each is asked about by three programs.
const MOST_IMAGES: usize = 4;
/// How late an OSD may drop a watch, and how long a reading may take on its way to it.
const LATE_S: u32 = 10;
/// Readings that are further apart begin anew: an OSD may have stood still between them.
const LONGEST_GAP: Duration = Duration::from_secs(30);
/// Images that are remembered.
const MOST_KNOWN: usize = 64;

pub(in crate::drivers) static DRIVER: Entry = Entry {
    declaration: Declaration {
        name: "rbd-watch",
        about: "images of a Ceph that hosts keep open",
        resources: &[Resource::Heartbeat],
        parameters: &[
            Parameter::required(POOL, "the pool of the images")
                .says_where()
                .allowing(ALLOWED_NAME, is_name),
            Parameter::required(
                IMAGES,
                "the images, with commas between them: a host that keeps one of them open is alive",
            )
            .says_where()
            .allowing(
                "1 to 4 names of images are allowed, with commas between them",
                |list| images(list).is_some(),
            ),
            Parameter::optional(
                HOST,
                "the addresses from which the host reaches Ceph, with commas between them",
            )
            .or_of_host()
            .tells_apart()
            .allowing(ALLOWED_ADDRESSES, |list| Addresses::parse(list).is_ok()),
            CONF_FILE,
            MONITORS,
            ROOK,
            NAMESPACE,
            USER,
            Parameter::optional(
                WATCH_TIMEOUT,
                "seconds after which an OSD drops a watch that is not renewed: osd_client_watch_timeout of the Ceph",
            )
            .by_default("30")
            .allowing("5 to 300 is allowed", |text| {
                text.parse().is_ok_and(|seconds: u32| (5..=300).contains(&seconds))
            }),
            silent_after("60", "15 to 3600 is allowed", |text| are_seconds(text, 15)),
        ],
        secrets: &[KEYRING],
        others: None,
        place: None,
        lingers_s: 0,
        device: |_| None,
        can_prove: |_| false,
    },
    make: |settings| {
        Arc::new(Reads {
            storage: Rbd {
                reached: Reached::of(settings),
                known: Mutex::default(),
            },
            clock: Arc::clone(&settings.clock),
        })
    },
};

const ALLOWED_NAME: &str =
    "a name without a slash, an at sign and a comma is allowed, and without a hyphen at its beginning";

/// A name that no program takes for an option or for a path.
fn is_name(name: &str) -> bool {
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || "/@,".contains(c);
    !name.is_empty() && name.len() <= 128 && !name.starts_with('-') && !name.contains(is_odd)
}

fn images(list: &str) -> Option<Vec<&str>> {
    let all: Vec<&str> = list.split(',').map(str::trim).collect();
    let are_names = all.iter().all(|name| is_name(name)) && all.len() <= MOST_IMAGES;
    are_names.then_some(all)
}

/// What was read of an image, and since when its OSDs have been the ones they are; empty while it is not known.
type Known = Arc<Turn<Option<Seen>>>;

struct Rbd {
    reached: Reached,
    known: Mutex<HashMap<String, Known>>,
}

#[derive(Clone)]
struct Seen {
    placed: Placed,
    interval: Interval,
    /// They have served the image, as they are, from then on.
    since: Instant,
    read_at: Instant,
}

/// Who has an image open.
struct Image {
    name: String,
    watches: Vec<Watch>,
    /// Why a watch says nothing of when it was renewed, if it does not.
    unsure: Option<String>,
}

#[async_trait]
impl Storage for Rbd {
    async fn read(
        &self,
        method: &FrozenMethod,
        secrets: &Secrets,
        hosts: &[String],
        until: Instant,
    ) -> Answer {
        let secrets = with_keys(secrets);
        let ceph = self.reached.program(method, &secrets, until).await?;
        let pool = needed(&method.parameters, POOL)?;
        let names = images(needed(&method.parameters, IMAGES)?)
            .ok_or_else(|| WorkerError::refused("the images cannot be used"))?;
        let timeout_s = value_of(&method.parameters, WATCH_TIMEOUT).and_then(|seconds| seconds.parse().ok());
        let within_s = timeout_s.unwrap_or(WATCH_TIMEOUT_S) + LATE_S;
        let reading = names
            .iter()
            .map(|name| self.image(&ceph, pool, name, within_s, until));
        let images = try_join_all(reading).await?;
        Ok(by_addresses(hosts, "Ceph", |host| {
            heartbeat(host, &images, within_s)
        }))
    }

    async fn validate(&self, request: &ValidateRequest) -> Vec<Problem> {
        let without = self.reached.validate_rados();
        self.reached
            .validate(request)
            .into_iter()
            .chain(without)
            .collect()
    }
}

impl Rbd {
    /// A reading that fails, and one that is cut off, leaves nothing known behind.
    async fn image(
        &self,
        ceph: &Ceph<'_>,
        pool: &str,
        name: &str,
        within_s: u32,
        until: Instant,
    ) -> Result<Image, WorkerError> {
        let known = self.of(format!("{} {pool}/{name}", ceph.place()));
        let mut known = known.lock().await;
        let before = known.take();
        let id = rados(
            ceph,
            &["--pool", pool, "get", &format!("rbd_id.{name}"), "-"],
            until,
        )
        .await?;
        let header = header_of(&id).ok_or_else(|| {
            WorkerError::unclear(format!("the image {pool}/{name} has no id that can be read"))
        })?;
        let (placed, interval) = interval(ceph, pool, &header, before.as_ref(), until).await?;
        // After that, and before the time counts from now: the OSD counts anew only from a question on.
        let listed = rados(ceph, &["--pool", pool, "listwatchers", &header], until).await?;
        let watches = parse(&listed).map_err(WorkerError::unclear)?;
        let seen = seen(before, placed, interval);
        let image = Image {
            name: format!("{pool}/{name}"),
            watches,
            unsure: unsure(&seen, within_s),
        };
        *known = Some(seen);
        Ok(image)
    }

    fn of(&self, place: String) -> Known {
        let mut all = self.known.lock();
        if all.len() >= MOST_KNOWN && !all.contains_key(&place) {
            all.clear();
        }
        Arc::clone(all.entry(place).or_default())
    }
}

fn seen(before: Option<Seen>, placed: Placed, interval: Interval) -> Seen {
    let now = Instant::now();
    let goes_on = before.filter(|before| before.interval == interval && now - before.read_at <= LONGEST_GAP);
    Seen {
        placed,
        interval,
        since: goes_on.map_or(now, |before| before.since),
        read_at: now,
    }
}

fn unsure(seen: &Seen, within_s: u32) -> Option<String> {
    if !seen.interval.recovers {
        // A watch of an object that misses a copy is dropped only once the object has been recovered.
        return Some("norecover is set: a watch that is not renewed may stay".to_owned());
    }
    let known_for = seen.read_at - seen.since;
    (known_for < Duration::from_secs(within_s.into())).then(|| {
        format!(
            "a watch counts once {} have served the image for {within_s} s; it is known for {} s",
            seen.interval.osds(),
            known_for.as_secs()
        )
    })
}

fn heartbeat(host: &Addresses, images: &[Image], within_s: u32) -> Heartbeat {
    let open = images.iter().filter_map(|image| {
        let watch = image.watches.iter().find(|watch| has(host, watch.address))?;
        Some((image, format!("{} has {} open", watch.client, image.name)))
    });
    let open: Vec<_> = open.collect();
    let sure = open.iter().find(|(image, _)| image.unsure.is_none());
    match (sure, open.first()) {
        (Some((_, by)), _) => Heartbeat::Heard {
            by: by.clone(),
            within_s,
        },
        (None, Some((image, by))) => unclear(format!(
            "{by}, and {}",
            image.unsure.as_deref().unwrap_or_default()
        )),
        (None, None) => Heartbeat::Unheard,
    }
}

/// Runs `rados`, and returns what it prints.
async fn rados(ceph: &Ceph<'_>, arguments: &[&str], until: Instant) -> Result<String, WorkerError> {
    printed("rados", ceph.rados(arguments, until).await)
}

/// What a program has printed. Its code tells no error that would stay from one that passes: an image may be made yet.
fn printed(program: &str, ended: Result<Ended, ProcessError>) -> Result<String, WorkerError> {
    match ended {
        Ok(ended) if ended.code == Some(0) => Ok(ended.stdout),
        Ok(ended) => {
            let said = last_line(&ended).unwrap_or_else(|| "it printed nothing".to_owned());
            Err(WorkerError::unclear(format!("{program} failed: {said}")))
        }
        Err(error @ ProcessError::Missing(_)) => Err(WorkerError::refused(error.to_string())),
        Err(error) => Err(WorkerError::unclear(error_chain(&error))),
    }
}
