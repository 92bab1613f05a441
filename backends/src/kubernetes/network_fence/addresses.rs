//! Which addresses of a node are cut off or given back.

use std::collections::BTreeSet;

use kube::{Api, ResourceExt};

use super::object::{CsiAddonsNode, FenceState, NetworkFence, Spec, kind, parsed};
use super::{Found, NetworkFencing, is_made_here, may_act};
use crate::{Addresses, BackendError};

impl NetworkFencing<'_> {
    /// The addresses to ask for. A node that has returned may have others than before: what it is given back is what was cut off, and
    /// what an earlier try was to give back. What was given back long ago may be another node's by now, and is not cut off.
    pub(super) async fn addresses(
        &self,
        found: &Found,
        wanted: FenceState,
    ) -> Result<Result<BTreeSet<String>, String>, BackendError> {
        let is_still = |one: &&NetworkFence| {
            wanted == FenceState::Unfenced || one.spec.fence_state == FenceState::Fenced
        };
        let before = found.own.iter().filter(is_still);
        let mut addresses: BTreeSet<String> = before.flat_map(|one| one.spec.cidrs.iter().cloned()).collect();
        if wanted == FenceState::Fenced || addresses.is_empty() {
            let more = match self.cidrs {
                Some(given) => Ok(given.clone()),
                None => self.reported().await?,
            };
            match more {
                Ok(more) => addresses.extend(more.iter().map(|address| address.net().to_string())),
                // Those of before may be all, or not.
                Err(why) => return Ok(Err(why)),
            }
        }
        Ok(Ok(addresses))
    }

    /// Those that the node's CSI driver has reported; why there are none, in words.
    async fn reported(&self) -> Result<Result<Addresses, String>, BackendError> {
        let client = self.cluster.client().await?.clone();
        let api: Api<CsiAddonsNode> = Api::all_with(client, &kind("CSIAddonsNode", "csiaddonsnodes"));
        let nodes = self.list(&api).await?;
        let of_node = nodes.iter().filter(|one| one.spec.driver.node_id == self.node);
        let classes = of_node.flat_map(|one| one.status.iter()).flat_map(|status| {
            let all = status.network_fence_client_status.iter();
            all.filter(|one| one.network_fence_class_name == self.class)
        });
        let clients = classes.flat_map(|class| &class.client_details);
        let cidrs: BTreeSet<&str> = clients
            .flat_map(|client| client.cidrs.iter().map(String::as_str))
            .collect();
        let (node, class) = (self.node, self.class);
        if cidrs.is_empty() {
            return Ok(Err(format!(
                "no CSIAddonsNode has addresses of node {node} for NetworkFenceClass {class}; csi-addons removes that of a node that it \
                 does not reach: give the addresses by the parameter cidrs"
            )));
        }
        let list = cidrs.into_iter().collect::<Vec<_>>().join(",");
        Ok(Addresses::parse(&list).map_err(|why| {
            format!("the CSIAddonsNode of node {node} {why}; give the addresses by the parameter cidrs")
        }))
    }

    /// Objects that are not for this node, and that would undo it when csi-addons starts. The error names one that is not Ringfence's to
    /// remove. An address that was given back to a node of Ringfence's may be another node's since.
    pub(super) fn undoing<'f>(
        &self,
        found: &'f Found,
        wanted: FenceState,
        addresses: &BTreeSet<String>,
    ) -> Result<Vec<&'f NetworkFence>, String> {
        let own = parsed(addresses);
        let may_be_of_class = |spec: &Spec| {
            spec.network_fence_class_name.is_empty() || spec.network_fence_class_name == self.class
        };
        let overlaps = |spec: &Spec| {
            let theirs = parsed(&spec.cidrs);
            own.iter()
                .any(|one| theirs.iter().any(|other| one.overlaps(*other)))
        };
        let undoes = |one: &&NetworkFence| {
            let spec = &one.spec;
            may_act(one) && spec.fence_state != wanted && may_be_of_class(spec) && overlaps(spec)
        };
        let undoing: Vec<&NetworkFence> = found.others.iter().filter(undoes).collect();
        let is_left = |one: &NetworkFence| wanted == FenceState::Fenced && is_made_here(one);
        match undoing.iter().find(|one| !is_left(one)) {
            None => Ok(undoing),
            Some(other) => Err(format!(
                "NetworkFence {} has fenceState {:?} for addresses of node {}, and csi-addons does it again whenever it starts; remove it",
                other.name_any(),
                other.spec.fence_state,
                self.node
            )),
        }
    }
}
