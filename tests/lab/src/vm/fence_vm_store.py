#!/usr/bin/python3
"""A fence agent for the array of virtual hosts (VmStore): off closes the export of one host, on opens it again.

The agent reads lines of key=value on its standard input, like every fence agent. "off" succeeds only after the event that reports the
deletion of the export: the array answers the command at once, and accepted writes land until then. "status" is OFF only for a
deleted export, and ON for one that is still closing.
"""

import json
import socket
import sys

METADATA = """<?xml version="1.0" ?>
<resource-agent name="fence_vm_store" shortdesc="Fence agent for the array of virtual hosts">
<longdesc>Closes and opens the way of one host to a shared disk.</longdesc>
<parameters>
<parameter name="action" unique="0" required="1"><content type="string" default="off" /></parameter>
<parameter name="plug" unique="0" required="1"><content type="string" /></parameter>
<parameter name="socket" unique="0" required="1"><content type="string" /></parameter>
</parameters>
<actions>
<action name="on" automatic="0" /><action name="off" /><action name="status" /><action name="monitor" /><action name="metadata" />
</actions>
</resource-agent>"""


class Array:
    """A connection to the array."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.lines = self.socket.makefile("rw")
        self.deleted = set()
        self.read()
        self.execute("qmp_capabilities")

    def read(self):
        line = self.lines.readline()
        if not line:
            sys.exit("Failed: the array has closed the connection")
        said = json.loads(line)
        if said.get("event") == "BLOCK_EXPORT_DELETED":
            self.deleted.add(said["data"]["id"])
        return said

    def execute(self, command, **arguments):
        arguments = {key.replace("_", "-"): value for key, value in arguments.items()}
        self.lines.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.lines.flush()
        while True:
            said = self.read()
            if "return" in said:
                return said["return"]
            if "error" in said:
                sys.exit("Failed: " + said["error"]["desc"])

    def until_deleted(self, host):
        while host not in self.deleted:
            self.read()

    def export(self, host):
        return next((export for export in self.execute("query-block-exports") if export["id"] == host), None)


def off(array, host):
    export = array.export(host)
    if export is None:
        return
    if not export["shutting-down"]:
        array.execute("block-export-del", id=host, mode="hard")
    array.until_deleted(host)


def on(array, host):
    if array.export(host) is None:
        array.execute("block-export-add", type="nbd", id=host, name=host, node_name="disk", writable=True)


def status(array, host):
    if array.export(host) is not None:
        print("Status: ON")
        return 0
    print("Status: OFF")
    return 2


def main():
    options = dict(line.strip().split("=", 1) for line in sys.stdin if "=" in line)
    action = options.get("action")
    if action == "metadata":
        print(METADATA)
        return 0
    if "socket" not in options or "plug" not in options:
        sys.exit("Failed: You have to enter socket and plug")
    array, host = Array(options["socket"]), options["plug"]
    if action in ("status", "monitor"):
        return status(array, host)
    if action not in ("on", "off"):
        sys.exit("Failed: Unrecognised action")
    off(array, host) if action == "off" else on(array, host)
    print("Success")
    return 0


sys.exit(main())
