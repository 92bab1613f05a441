//! Releasing the volumes of a host's servers.
//!
//! Nova connects the volumes of servers that have moved anew; only the attachments that reserved them are left to delete. For servers that
//! remain, Nova's records name attachments that are gone, and Nova connects nothing anew by itself: Ringfence asks Nova to detach the
//! volume from the server and to attach it again, while Ringfence's own attachment reserves it. Each step follows from what Nova and Cinder
//! show, so that the next attempt continues where the last one stopped.

use std::collections::BTreeSet;

use crate::openstack::{Server, Volume};
use futures_util::future::try_join_all;
use tokio::time::{Instant, sleep};

use super::held::HeldVolume;
use super::note::{HOST, Note};
use crate::BackendError;
use crate::openstack::host::{AT_ONCE, Fenced, HostOf, PAUSE, ReadBack, is_hopeless};

/// Nova's word for a guest that runs.
const RUNNING: i64 = 1;

/// The result of a step for one volume.
enum Next {
    /// Nothing is left to do.
    Settled,
    /// A change was made, or Nova is making one: look again.
    Look,
    /// A person has to do what the text says.
    ForAPerson(String),
}

impl HostOf<'_> {
    /// Releases the volumes, until each is connected as Nova has it on record.
    ///
    /// # Errors
    /// Nova or Cinder is away, or refuses.
    pub async fn release_volumes(&self) -> Result<Fenced, BackendError> {
        if let Some(why) = self.is_unknown().await? {
            return Ok(Fenced::No(why));
        }
        let mut trouble = None;
        loop {
            let from = Instant::now();
            match self.one_round().await {
                Ok((left, by_hand)) if left == 0 && by_hand.is_empty() => {
                    let detail = format!(
                        "every volume of the servers of {} is connected as nova has it on record",
                        self.host
                    );
                    return Ok(Fenced::So(ReadBack::new(detail, from)));
                }
                Ok((0, by_hand)) => return Ok(Fenced::NotYet(told(&by_hand))),
                Ok((left, by_hand)) if !self.has_time() => {
                    let why = format!("{left} volumes are not released yet; {}", told(&by_hand));
                    return Ok(Fenced::NotYet(with(why, trouble)));
                }
                Ok(_) => trouble = None,
                Err(error) if !self.has_time() || is_hopeless(&error) => return Err(error),
                Err(error) => trouble = Some(error),
            }
            sleep(PAUSE).await;
        }
    }

    /// One step for each volume: how many volumes need another step, and what a person has to do.
    async fn one_round(&self) -> Result<(usize, Vec<String>), BackendError> {
        self.release_reserves_of_the_moved().await?;
        let noted = self.cloud.volumes_noted(HOST, self.host).await?;
        let held = self.held().await?;
        let mut left = held.leaving.len();
        let mut by_hand = Vec::new();
        let mut count = |next: Next| match next {
            Next::Settled => {}
            Next::Look => left += 1,
            Next::ForAPerson(why) => by_hand.push(why),
        };
        let mut listed = BTreeSet::new();
        for volume in &held.volumes {
            listed.insert(volume.volume.volume.as_str());
            let is_noted = noted.iter().any(|noted| noted.id == volume.volume.volume);
            count(self.step(volume, is_noted).await?);
        }
        for volume in noted.iter().filter(|volume| !listed.contains(volume.id.as_str())) {
            count(self.attach_again(volume).await.or_else(refused)?);
        }
        Ok((left, by_hand))
    }

    /// The next step for a volume that Nova has on record for its server.
    async fn step(&self, held: &HeldVolume, is_noted: bool) -> Result<Next, BackendError> {
        if held.server.task_state.is_some() {
            return Ok(Next::Look);
        }
        let is_running = held.server.power_state == RUNNING;
        match (held.is_connected(), held.has_our_reserve()) {
            (true, false) if !is_noted => Ok(Next::Settled),
            // The volume was released, and the attachment that reserved it is needed no more.
            (true, _) if is_noted => {
                self.release(held).await?;
                Note::take_off(self.cloud, &held.volume.volume).await?;
                Ok(Next::Look)
            }
            // A request to cut the volume may still be under way, and would be carried out at any later time. Ringfence repeats the cut, so
            // that the request is over.
            (true, _) if is_running => Ok(Next::ForAPerson(format!(
                "{} may be cut off at any time while the server runs: stop the server",
                held.name()
            ))),
            (true, _) => {
                self.cut(held).await?;
                Ok(Next::Look)
            }
            // Nova is connecting the volume, or never had to.
            (false, _) if held.is_kept_by_nova() && is_noted => Ok(Next::Look),
            (false, _) if held.is_kept_by_nova() => Ok(Next::Settled),
            (false, _) if is_running => Ok(Next::ForAPerson(format!(
                "{} was cut off while the server runs: stop the server",
                held.name()
            ))),
            (false, _) => self.detach(held).await,
        }
    }

    /// Not asked for while Nova is detaching the volume: a second request could detach the volume that was attached again meanwhile.
    async fn detach(&self, held: &HeldVolume) -> Result<Next, BackendError> {
        let (server, volume) = (&held.server, &held.volume);
        let status = self
            .cloud
            .volume(&volume.volume)
            .await?
            .map(|volume| volume.status);
        if status.as_deref() == Some("detaching") {
            return Ok(Next::Look);
        }
        if !held.has_our_reserve() {
            self.cloud.reserve(&volume.volume, &server.id).await?;
        }
        let note = Note {
            server: server.id.clone(),
            volume: volume.clone(),
        };
        note.write(self.cloud, self.host).await?;
        if volume.device.is_some() && volume.device == server.root_device {
            return Ok(Next::ForAPerson(format!(
                "{} is its first disk, which nova takes from no server: shelve the server, retry this, and unshelve it when the host is enabled",
                held.name()
            )));
        }
        // Nova detaches a volume only if Cinder's status for it is in-use. Of two requests Cinder lets one begin, unless the status is
        // declared between them.
        if status.as_deref() != Some("in-use") {
            self.cloud
                .declare_volume(&volume.volume, "in-use", Some("attached"))
                .await?;
        }
        self.cloud.detach_volume(&server.id, &volume.volume).await?;
        Ok(Next::Look)
    }

    /// The next step for a volume that Nova has detached for Ringfence.
    async fn attach_again(&self, volume: &Volume) -> Result<Next, BackendError> {
        let Some(note) = Note::of(volume) else {
            Note::take_off(self.cloud, &volume.id).await?;
            return Ok(Next::Look);
        };
        let Some(server) = self.cloud.server(&note.server).await? else {
            self.forget(volume, &note.server).await?;
            return Ok(Next::Look);
        };
        if let Some(why) = self.is_not_ours(volume, &server).await? {
            return Ok(Next::ForAPerson(why));
        }
        if server.task_state.is_some() {
            return Ok(Next::Look);
        }
        let known = self.volumes_of(&server).await?;
        if let Some(held) = known.iter().find(|held| held.volume.volume == volume.id) {
            return self.step_elsewhere(held).await;
        }
        // With the status reserved, Nova may attach the volume to its server, and no other server can take it.
        if volume.status != "reserved" {
            self.cloud.declare_volume(&volume.id, "reserved", None).await?;
        }
        self.cloud.attach_volume(&server.id, &note.volume).await?;
        Ok(Next::Look)
    }

    /// The owner of a volume can write its notes too: notes without a reservation of Ringfence's, or for a server of another project, are
    /// not Ringfence's.
    async fn is_not_ours(&self, volume: &Volume, server: &Server) -> Result<Option<String>, BackendError> {
        let is_one_owners = volume.project.is_some() && volume.project == server.project;
        let is_kept = !self.cloud.attachments(&volume.id, &server.id).await?.is_empty();
        let why = || {
            format!(
                "volume {} has notes of Ringfence for server {}, but Ringfence is not releasing it to that server: remove its metadata ringfence_*",
                volume.id, server.id
            )
        };
        Ok((!(is_one_owners && is_kept)).then(why))
    }

    /// The next step for a volume whose server has left the host.
    async fn step_elsewhere(&self, held: &HeldVolume) -> Result<Next, BackendError> {
        if held.is_kept_by_nova() {
            self.release(held).await?;
            Note::take_off(self.cloud, &held.volume.volume).await?;
        }
        Ok(Next::Look)
    }

    /// Deletes the reservations and the notes of a volume whose server is gone.
    async fn forget(&self, volume: &Volume, server: &str) -> Result<(), BackendError> {
        for reserve in self.cloud.attachments(&volume.id, server).await? {
            if reserve.is_reserve() {
                self.cloud.release(&reserve.id).await?;
            }
        }
        Note::take_off(self.cloud, &volume.id).await
    }

    async fn release(&self, held: &HeldVolume) -> Result<(), BackendError> {
        for reserve in held.our_reserves() {
            self.cloud.release(&reserve.id).await?;
        }
        Ok(())
    }

    async fn release_reserves_of_the_moved(&self) -> Result<(), BackendError> {
        let evacuations = self.cloud.evacuations_from(self.host).await?;
        let servers: BTreeSet<&str> = evacuations
            .iter()
            .map(|evacuation| evacuation.server.as_str())
            .collect();
        let servers: Vec<&str> = servers.into_iter().collect();
        for some in servers.chunks(AT_ONCE) {
            try_join_all(some.iter().map(|id| self.release_reserves_of_one(id))).await?;
        }
        Ok(())
    }

    async fn release_reserves_of_one(&self, id: &str) -> Result<(), BackendError> {
        if let Some(server) = self.cloud.server(id).await? {
            release_reserves_of(&server, *self).await?;
        }
        Ok(())
    }
}

/// Deletes the attachments that reserved a server's volumes, once the server has left the host and Nova's own attachments keep the volumes.
/// The answer is whether none is left.
pub(crate) async fn release_reserves_of(server: &Server, at: HostOf<'_>) -> Result<bool, BackendError> {
    if server.host.as_deref() == Some(at.host) || server.task_state.is_some() {
        return Ok(false);
    }
    let mut is_clean = true;
    for held in at.volumes_of(server).await? {
        if !held.has_our_reserve() {
            continue;
        }
        // Without Nova's attachment, the deletion would free the volume for any server.
        if held.is_kept_by_nova() {
            at.release(&held).await?;
        } else {
            is_clean = false;
        }
    }
    Ok(is_clean)
}

/// A refusal for one volume does not stop the release of others.
fn refused(error: BackendError) -> Result<Next, BackendError> {
    match error {
        BackendError::Refused { .. } | BackendError::NotFound { .. } => {
            Ok(Next::ForAPerson(error.to_string()))
        }
        other => Err(other),
    }
}

fn told(by_hand: &[String]) -> String {
    if by_hand.is_empty() {
        return "nova is detaching or attaching volumes (a volume that stays `detaching` was lost when nova-compute restarted: set its status to in-use)".to_owned();
    }
    format!("for a person: {}", by_hand.join("; "))
}

fn with(why: String, trouble: Option<BackendError>) -> String {
    match trouble {
        Some(trouble) => format!("{why}; {trouble}"),
        None => why,
    }
}
