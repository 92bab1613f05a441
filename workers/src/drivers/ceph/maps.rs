//! What a Ceph tells of its OSDs, monitors, pools and placement groups, in the JSON of the program `ceph`.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{CephMaps, CephMonitor, CephOsd, CephPool, OsdId, PlacementGroup};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The number of the type of a host in the tree; those of OSDs are less, those of racks and rooms more.
const HOST: i64 = 1;

/// What the commands print, in the order of [`Printed::COMMANDS`].
pub(super) struct Printed {
    pub osds: String,
    pub tree: String,
    pub rules: String,
    pub osd_metadata: String,
    pub quorum: String,
    pub monitor_metadata: String,
    pub groups: String,
}

#[derive(Deserialize)]
struct OsdMap {
    fsid: String,
    pools: Vec<Pool>,
    osds: Vec<Osd>,
}

#[derive(Deserialize)]
struct Pool {
    pool: u64,
    min_size: u32,
    pg_num: u32,
    crush_rule: i64,
}

#[derive(Deserialize)]
struct Osd {
    osd: OsdId,
    up: u8,
    r#in: u8,
}

#[derive(Deserialize)]
struct Tree {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: i64,
    name: String,
    r#type: String,
    type_id: i64,
    #[serde(default)]
    children: Vec<i64>,
}

#[derive(Deserialize)]
struct Rule {
    rule_id: i64,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    /// Of a step that chooses.
    r#type: Option<String>,
}

#[derive(Deserialize)]
struct OsdMetadata {
    id: OsdId,
    /// That of the machine; in a container, of the node.
    hostname: Option<String>,
}

#[derive(Deserialize)]
struct Quorum {
    quorum_names: BTreeSet<String>,
    monmap: MonitorMap,
}

#[derive(Deserialize)]
struct MonitorMap {
    mons: Vec<Monitor>,
}

#[derive(Deserialize)]
struct Monitor {
    name: String,
}

#[derive(Deserialize)]
struct MonitorMetadata {
    name: String,
    hostname: Option<String>,
}

#[derive(Deserialize)]
struct Groups {
    pg_ready: bool,
    pg_stats: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    pgid: String,
    state: String,
    acting: Vec<OsdId>,
}

fn read<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("what ceph printed for {what} could not be read: {error}"))
}

impl Printed {
    /// What is asked; the last one is for a manager.
    pub const COMMANDS: [&[&str]; 7] = [
        &["osd", "dump"],
        &["osd", "tree"],
        &["osd", "crush", "rule", "dump"],
        &["osd", "metadata"],
        &["quorum_status"],
        &["mon", "metadata"],
        &["pg", "dump", "pgs_brief"],
    ];

    pub fn maps(&self) -> Result<CephMaps, String> {
        let map: OsdMap = read("osd dump", &self.osds)?;
        let groups: Groups = read("pg dump", &self.groups)?;
        if !groups.pg_ready {
            return Err("the manager of Ceph does not know the placement groups yet".to_owned());
        }
        let groups = groups.pg_stats.into_iter().map(|group| PlacementGroup {
            id: group.pgid,
            state: group.state,
            acting: group.acting,
        });
        let pools = map.pools.iter().map(|pool| {
            let known = CephPool {
                min_size: pool.min_size,
                groups: pool.pg_num,
            };
            (pool.pool, known)
        });
        let maps = CephMaps {
            pools: pools.collect(),
            groups: groups.collect(),
            monitors: self.monitors()?,
            osds: self.osds(&map)?,
            fsid: map.fsid,
        };
        if maps.is_complete() {
            return Ok(maps);
        }
        Err(format!(
            "the manager of Ceph has told of {} placement groups, and its pools have more",
            maps.groups.len()
        ))
    }

    fn osds(&self, map: &OsdMap) -> Result<BTreeMap<OsdId, CephOsd>, String> {
        let tree = Places::new(read("osd tree", &self.tree)?);
        let rules: Vec<Rule> = read("osd crush rule dump", &self.rules)?;
        let domain = tree.narrowest_domain(map, &rules);
        let metadata: Vec<OsdMetadata> = read("osd metadata", &self.osd_metadata)?;
        let hostnames: BTreeMap<_, _> = metadata.into_iter().map(|osd| (osd.id, osd.hostname)).collect();
        let known = map.osds.iter().map(|osd| {
            let hostname = hostnames.get(&osd.osd).cloned().flatten();
            let bucket = tree.above(osd.osd, HOST).map(str::to_owned);
            let known = CephOsd {
                is_up: osd.up == 1,
                is_in: osd.r#in == 1,
                hosts: hostname.into_iter().chain(bucket).collect(),
                domain: tree.above(osd.osd, domain).map(str::to_owned),
            };
            (osd.osd, known)
        });
        Ok(known.collect())
    }

    fn monitors(&self) -> Result<Vec<CephMonitor>, String> {
        let quorum: Quorum = read("quorum_status", &self.quorum)?;
        let metadata: Vec<MonitorMetadata> = read("mon metadata", &self.monitor_metadata)?;
        let monitor = |monitor: Monitor| {
            let its = metadata.iter().filter(|known| known.name == monitor.name);
            CephMonitor {
                is_in_quorum: quorum.quorum_names.contains(&monitor.name),
                hosts: its.filter_map(|known| known.hostname.clone()).collect(),
            }
        };
        Ok(quorum.monmap.mons.into_iter().map(monitor).collect())
    }
}

/// Where OSDs are in the tree.
struct Places {
    nodes: BTreeMap<i64, Node>,
    parents: BTreeMap<i64, i64>,
}

impl Places {
    fn new(tree: Tree) -> Self {
        let parents = tree
            .nodes
            .iter()
            .flat_map(|node| node.children.iter().map(|child| (*child, node.id)));
        Self {
            parents: parents.collect(),
            nodes: tree.nodes.into_iter().map(|node| (node.id, node)).collect(),
        }
    }

    /// The number of the narrowest type over which a pool spreads its copies, a host at least. Where a rule chooses what is not in the tree, it is a host.
    fn narrowest_domain(&self, map: &OsdMap, rules: &[Rule]) -> i64 {
        let used = rules
            .iter()
            .filter(|rule| map.pools.iter().any(|pool| pool.crush_rule == rule.rule_id));
        let chosen = used
            .flat_map(|rule| &rule.steps)
            .filter_map(|step| step.r#type.as_deref());
        let number = |name: &str| {
            let node = self.nodes.values().find(|node| node.r#type == name);
            node.map_or(HOST, |node| node.type_id)
        };
        chosen.map(number).min().unwrap_or(HOST).max(HOST)
    }

    /// The name of what an OSD is in, of this type.
    fn above(&self, osd: OsdId, type_id: i64) -> Option<&str> {
        let mut at = i64::from(osd);
        // A tree has no circle; if this one had, it would end.
        for _ in 0..self.nodes.len() {
            at = *self.parents.get(&at)?;
            let node = self.nodes.get(&at)?;
            if node.type_id == type_id {
                return Some(&node.name);
            }
        }
        None
    }
}
