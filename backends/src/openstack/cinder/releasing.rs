//! Giving a host's servers their volumes back.
//!
//! Servers that have moved were connected anew by Nova, and only what kept their volumes for them is left over. Servers that remain have
//! records in Nova that name an attachment which is gone, and Nova connects nothing anew by itself: it is asked to take the volume from the
//! server and to give it back, while our own attachment keeps it. Each step follows from what Nova and Cinder show, so that whoever comes
//! later goes on where the last one stopped.

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

/// What is to be done about a volume.
enum Next {
    /// Nothing.
    Settled,
    /// Something was done, or Nova is at it: look again.
    Look,
    /// A person has to do it, and what.
    ForAPerson(String),
}

impl HostOf<'_> {
    /// Until every volume is connected as Nova has it on record.
    ///
    /// # Errors
    /// Nova or Cinder is away, or refuses.
    pub async fn give_volumes_back(&self) -> Result<Fenced, BackendError> {
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
                    let why = format!("{left} volumes are not given back yet; {}", told(&by_hand));
                    return Ok(Fenced::NotYet(with(why, trouble)));
                }
                Ok(_) => trouble = None,
                Err(error) if !self.has_time() || is_hopeless(&error) => return Err(error),
                Err(error) => trouble = Some(error),
            }
            sleep(PAUSE).await;
        }
    }

    /// One step for each volume: how many need another one, and what is for a person.
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

    /// For a volume that Nova takes for its server's.
    async fn step(&self, held: &HeldVolume, is_noted: bool) -> Result<Next, BackendError> {
        if held.server.task_state.is_some() {
            return Ok(Next::Look);
        }
        let is_running = held.server.power_state == RUNNING;
        match (held.is_connected(), held.has_our_reserve()) {
            (true, false) if !is_noted => Ok(Next::Settled),
            // It was given back, and what kept it for its server is no more needed.
            (true, _) if is_noted => {
                self.release(held).await?;
                Note::take_off(self.cloud, &held.volume.volume).await?;
                Ok(Next::Look)
            }
            // A request to cut it may still be under way, and would be carried out at any later time: it is brought to its end.
            (true, _) if is_running => Ok(Next::ForAPerson(format!(
                "{} may be cut off at any time while the server runs: stop the server",
                held.name()
            ))),
            (true, _) => {
                self.cut(held).await?;
                Ok(Next::Look)
            }
            // Nova is connecting it, or never had.
            (false, _) if held.is_kept_by_nova() && is_noted => Ok(Next::Look),
            (false, _) if held.is_kept_by_nova() => Ok(Next::Settled),
            (false, _) if is_running => Ok(Next::ForAPerson(format!(
                "{} was cut off while the server runs: stop the server",
                held.name()
            ))),
            (false, _) => self.detach(held).await,
        }
    }

    /// Never asked for while Nova is at it: a second request beside the first could take what was given back meanwhile.
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
        // Nova takes a volume from a server only if Cinder calls it in use. Of two requests Cinder lets one begin, as long as nobody declares
        // anything in between.
        if status.as_deref() != Some("in-use") {
            self.cloud
                .declare_volume(&volume.volume, "in-use", Some("attached"))
                .await?;
        }
        self.cloud.detach_volume(&server.id, &volume.volume).await?;
        Ok(Next::Look)
    }

    /// For a volume that Nova has taken from its server for us.
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
        // Nova may reserve it for the same server then, and nobody for another one.
        if volume.status != "reserved" {
            self.cloud.declare_volume(&volume.id, "reserved", None).await?;
        }
        self.cloud.attach_volume(&server.id, &note.volume).await?;
        Ok(Next::Look)
    }

    /// Who owns a volume writes its notes as well: without what we have reserved, and for a server of somebody else, they are not ours.
    async fn is_not_ours(&self, volume: &Volume, server: &Server) -> Result<Option<String>, BackendError> {
        let is_one_owners = volume.project.is_some() && volume.project == server.project;
        let is_kept = !self.cloud.attachments(&volume.id, &server.id).await?.is_empty();
        let why = || {
            format!(
                "volume {} has notes that it is on its way back to server {}, which it is not: take off its metadata ringfence_*",
                volume.id, server.id
            )
        };
        Ok((!(is_one_owners && is_kept)).then(why))
    }

    /// Its server has left the host meanwhile, and has it.
    async fn step_elsewhere(&self, held: &HeldVolume) -> Result<Next, BackendError> {
        if held.is_kept_by_nova() {
            self.release(held).await?;
            Note::take_off(self.cloud, &held.volume.volume).await?;
        }
        Ok(Next::Look)
    }

    /// Nobody needs it to be kept any more.
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

/// Takes away what has kept a server's volumes for it, once the server has left the host and Nova keeps them. Whether nothing is left.
pub(crate) async fn release_reserves_of(server: &Server, at: HostOf<'_>) -> Result<bool, BackendError> {
    if server.host.as_deref() == Some(at.host) || server.task_state.is_some() {
        return Ok(false);
    }
    let mut is_clean = true;
    for held in at.volumes_of(server).await? {
        if !held.has_our_reserve() {
            continue;
        }
        // The volume would be anybody's otherwise.
        if held.is_kept_by_nova() {
            at.release(&held).await?;
        } else {
            is_clean = false;
        }
    }
    Ok(is_clean)
}

/// What one volume is refused keeps no other from being given back.
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
        return "nova is at it (a volume that stays `detaching` was lost by a nova-compute that was started anew: declare it in-use)".to_owned();
    }
    format!("for a person: {}", by_hand.join("; "))
}

fn with(why: String, trouble: Option<BackendError>) -> String {
    match trouble {
        Some(trouble) => format!("{why}; {trouble}"),
        None => why,
    }
}
