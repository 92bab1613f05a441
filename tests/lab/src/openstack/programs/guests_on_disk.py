"""Nova's fake driver with guests that live on when nova-compute ends, as libvirt's do.

The guests are in `domains.json` in the host's state folder, and their changes in `history.jsonl`. A guest that runs in the files
of two hosts is a split brain.
"""

import json
import os
import time

from oslo_config import cfg

from nova.compute import power_state
from nova.virt import fake


MOST_HELD_S = 300


def _file(name):
    return os.path.join(cfg.CONF.state_path, name)


class GuestsOnDisk(fake.FakeDriver):
    def __init__(self, virtapi, read_only=False):
        super().__init__(virtapi, read_only)
        self._sizes = {}

    def init_host(self, host):
        super().init_host(host)
        try:
            with open(_file("domains.json")) as file:
                domains = json.load(file)
        except FileNotFoundError:
            return
        for uuid, domain in domains.items():
            state = power_state.RUNNING if domain["running"] else power_state.SHUTDOWN
            self.instances[uuid] = fake.FakeInstance(domain["name"], state, uuid)
            self._sizes[uuid] = domain["size"]
            self.resources.claim(*domain["size"])

    def get_host_uptime(self):
        """The uptime in the format of the command `uptime`, as libvirt's driver has it. A restart of nova-compute is no boot."""
        with open(_file("boot_time")) as file:
            minutes = int((time.time() - float(file.read())) // 60)
        days, minutes = divmod(minutes, 24 * 60)
        hours, minutes = divmod(minutes, 60)
        since = "%2d:%02d" % (hours, minutes) if hours else "%d min" % minutes
        if days:
            since = "%d day%s, %s" % (days, "" if days == 1 else "s", since)
        return " %s up %s,  1 user,  load average: 0.00, 0.00, 0.00\n" % (time.strftime("%H:%M:%S"), since)

    def spawn(self, context, instance, *arguments, **options):
        super().spawn(context, instance, *arguments, **options)
        flavor = instance.flavor
        self._sizes[instance.uuid] = [flavor.vcpus, flavor.memory_mb, flavor.root_gb]
        self._record("spawn", instance.uuid)
        # The guest runs, and the driver has not returned yet.
        until = time.time() + MOST_HELD_S
        while os.path.exists(_file("hold")) and time.time() < until:
            time.sleep(0.1)

    def destroy(self, context, instance, *arguments, **options):
        was_there = instance.uuid in self.instances
        super().destroy(context, instance, *arguments, **options)
        if was_there:
            self._record("destroy", instance.uuid)

    def power_off(self, instance, *arguments, **options):
        super().power_off(instance, *arguments, **options)
        self._record("power_off", instance.uuid)

    def power_on(self, context, instance, *arguments, **options):
        super().power_on(context, instance, *arguments, **options)
        self._record("power_on", instance.uuid)

    def _record(self, what, uuid):
        domains = {
            uuid: {"name": guest.name, "running": guest.state == power_state.RUNNING, "size": self._sizes[uuid]}
            for uuid, guest in self.instances.items()
        }
        with open(_file("domains.json.new"), "w") as file:
            json.dump(domains, file)
        os.rename(_file("domains.json.new"), _file("domains.json"))
        with open(_file("history.jsonl"), "a") as file:
            file.write(json.dumps({"at": time.time(), "what": what, "server": uuid}) + "\n")
