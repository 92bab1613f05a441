//! A cluster of one node for the fencer: a fencer without a cluster has no topology. The cluster's configuration is a file of this test.

use std::time::Duration;

use parking_lot::Mutex;

use super::PACKAGE;
use crate::error::LabError;
use crate::home::{Home, wait_ready};
use crate::leash::{Leash, Start};
use crate::net::free_udp_port;
use crate::programs::find_program;

const READY_LIMIT: Duration = Duration::from_secs(20);
const CIB: &str = "cib.xml";

/// Corosync, and the cluster's configuration as `cibadmin` reads it.
#[derive(Debug)]
pub(super) struct Cluster {
    _corosync: Leash,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    devices: String,
    levels: String,
}

impl Cluster {
    pub(super) fn start(home: &Home) -> Result<Self, LabError> {
        let program = find_program("corosync").ok_or(LabError::Missing {
            program: "corosync",
            package: PACKAGE,
        })?;
        home.make_folder("state")?;
        home.write("corosync.conf", &configuration(home, free_udp_port()?))?;
        let log = home.join("corosync.log");
        let corosync = Leash::start(Start {
            arguments: vec!["-f".to_owned(), "-c".to_owned(), home.text("corosync.conf")],
            ..Start::new(&program, &log, home.path())
        })?;
        wait_ready("Corosync", &corosync, &log, READY_LIMIT, || {
            std::fs::read_to_string(&log).is_ok_and(|text| text.contains("ready to provide service"))
        })?;
        let cluster = Self {
            _corosync: corosync,
            known: Mutex::default(),
        };
        cluster.write(home, &Known::default())?;
        Ok(cluster)
    }

    /// The variable with the path of the configuration, for Pacemaker's programs.
    pub(super) fn environment(home: &Home) -> (&'static str, String) {
        ("CIB_file", home.text(CIB))
    }

    pub(super) fn add_device(
        &self,
        home: &Home,
        id: &str,
        agent: &str,
        options: &[(&str, &str)],
    ) -> Result<(), LabError> {
        let mut known = self.known.lock();
        let pairs: String = options
            .iter()
            .map(|(name, value)| {
                let value = value
                    .replace('&', "&amp;")
                    .replace('<', "&lt;")
                    .replace('"', "&quot;");
                format!("<nvpair id=\"{id}-{name}\" name=\"{name}\" value=\"{value}\"/>")
            })
            .collect();
        known.devices.push_str(&format!(
            "<primitive id=\"{id}\" class=\"stonith\" type=\"{agent}\">\
             <instance_attributes id=\"{id}-parameters\">{pairs}</instance_attributes></primitive>\n"
        ));
        self.write(home, &known)
    }

    pub(super) fn add_level(
        &self,
        home: &Home,
        node: &str,
        level: u32,
        devices: &[&str],
    ) -> Result<(), LabError> {
        let mut known = self.known.lock();
        let devices = devices.join(",");
        known.levels.push_str(&format!(
            "<fencing-level id=\"level-{node}-{level}\" target=\"{node}\" index=\"{level}\" devices=\"{devices}\"/>\n"
        ));
        self.write(home, &known)
    }

    fn write(&self, home: &Home, known: &Known) -> Result<(), LabError> {
        let Known { devices, levels } = known;
        let text = format!(
            "<cib validate-with=\"pacemaker-3.9\" epoch=\"1\" num_updates=\"0\" admin_epoch=\"0\"><configuration>\n\
             <crm_config/><nodes/><resources>\n{devices}</resources><constraints/>\n\
             <fencing-topology>\n{levels}</fencing-topology>\n</configuration><status/></cib>\n"
        );
        home.write(CIB, &text).map(|_| ())
    }
}

/// One node on loopback, without realtime priority, so that other processes are not starved.
fn configuration(home: &Home, port: u16) -> String {
    let state = home.text("state");
    format!(
        "system {{\n  state_dir: {state}\n  sched_rr: no\n}}\n\
         totem {{\n  version: 2\n  cluster_name: lab\n  transport: udpu\n  interface {{\n    linknumber: 0\n    \
         mcastport: {port}\n  }}\n}}\n\
         nodelist {{\n  node {{\n    name: lab\n    nodeid: 1\n    ring0_addr: 127.0.0.1\n  }}\n}}\n\
         quorum {{\n  provider: corosync_votequorum\n}}\n\
         logging {{\n  to_stderr: yes\n  to_syslog: no\n  to_logfile: no\n}}\n"
    )
}
