"""neutron_agents.py CONFIGURATION FOLDER: for each file in FOLDER an Open vSwitch agent on the host of that name.

The agents report to the real Neutron over the broker as Neutron's own agents do, and have no switch. When a file is removed, its
agent falls silent.
"""

import os
import sys
import time

from neutron.agent import rpc as agent_rpc
from neutron.common import config
from neutron.conf.agent import common as agent_conf
from neutron_lib import constants, context
from neutron_lib.agent import topics
from oslo_config import cfg

REPORT_S = 2
LOOK_S = 0.2

configuration, folder = sys.argv[1:3]
agent_conf.register_agent_state_opts_helper(cfg.CONF)
config.register_common_config_options()
config.init(["--config-file", configuration])
config.setup_logging()
api = agent_rpc.PluginReportStateAPI(topics.REPORTS)


def report(host, is_first):
    state = {
        "agent_type": constants.AGENT_TYPE_OVS,
        "binary": "neutron-openvswitch-agent",
        "host": host,
        "topic": "N/A",
        "configurations": {
            "bridge_mappings": {"physnet1": "br-ex"},
            "tunneling_ip": "127.0.0.1",
            "tunnel_types": ["vxlan"],
            "datapath_type": "system",
            "ovs_hybrid_plug": False,
            "l2_population": False,
        },
    }
    if is_first:
        state["start_flag"] = True
    api.report_state(context.get_admin_context_without_session(), state, True)


reported = {}
while True:
    hosts = set(os.listdir(folder))
    reported = {host: at for host, at in reported.items() if host in hosts}
    for host in hosts:
        if time.monotonic() - reported.get(host, -REPORT_S) < REPORT_S:
            continue
        try:
            report(host, host not in reported)
            reported[host] = time.monotonic()
        except Exception as error:
            print(host, error, flush=True)
    time.sleep(LOOK_S)
