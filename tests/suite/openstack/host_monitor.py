"""Masakari's host monitor without Pacemaker: lines `HOST online` or `HOST offline` on standard input set the cluster's state."""

import sys

from masakarimonitors import config
from masakarimonitors.hostmonitor.host_handler import handle_host
from oslo_log import log


def main():
    config.parse_args(["masakari-hostmonitor", "--config-file", sys.argv[1]])
    log.setup(config.CONF, "masakarimonitors")
    monitor = handle_host.HandleHost()
    for line in sys.stdin:
        host, status = line.split()
        monitor._check_if_status_changed([{"uname": host, "crmd": status}])
        print(line.strip(), flush=True)


main()
