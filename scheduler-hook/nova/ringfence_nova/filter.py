"""A filter of Nova's scheduler: only hosts pass whose schedule gate in Ringfence is open."""

import logging

from nova.scheduler import filters

from ringfence_nova import options
from ringfence_nova.hook import HookUnavailable

LOG = logging.getLogger(__name__)

PATH = "/nova/filter"
#: How many refused hosts the log names; it counts the others.
MAX_NAMED_HOSTS = 10


class RingfenceFilter(filters.BaseHostFilter):
    """Removes hosts that Ringfence does not allow, by one question for all hosts of a request."""

    # Nova skips filters without this for a server that is rebuilt on its own host.
    RUN_ON_REBUILD = True
    # The servers of one request are placed in turn, on the hosts that the first pass has left.
    run_filter_once_per_request = True

    def __init__(self):
        section = options.settings()
        self._hook = options.hook_from(section)
        self._cloud = section.cloud
        self._open_on_error = options.filter_is_open_on_error(section)

    def filter_all(self, filter_obj_list, spec_obj):
        states = list(filter_obj_list)
        allowed = self._allowed_among({state.host for state in states}, spec_obj)
        return [state for state in states if state.host in allowed]

    def host_passes(self, host_state, spec_obj):
        return host_state.host in self._allowed_among({host_state.host}, spec_obj)

    def _allowed_among(self, hosts, spec_obj):
        if not hosts:
            return hosts
        question = {"cloud": self._cloud, "hosts": sorted(hosts)}
        server = spec_obj.instance_uuid if spec_obj.obj_attr_is_set("instance_uuid") else None
        complaint = None
        try:
            allowed, reasons = self._hook.ask(PATH, question, understand)
        except HookUnavailable as error:
            complaint = str(error)
        # Not within the except clause: oslo.log would add the exception to the log line.
        if complaint is not None:
            return self._without_an_answer(hosts, server, complaint)
        refused = hosts - allowed
        if refused:
            LOG.info(
                "Ringfence refuses %d of %d hosts for server %s: %s",
                len(refused),
                len(hosts),
                server,
                _named(refused, reasons),
            )
        return hosts & allowed

    def _without_an_answer(self, hosts, server, complaint):
        if self._open_on_error:
            LOG.warning(
                "Ringfence cannot be asked; all %d hosts pass unchecked for server %s: %s",
                len(hosts),
                server,
                complaint,
            )
            return hosts
        LOG.error(
            "Ringfence cannot be asked; none of %d hosts passes for server %s: %s",
            len(hosts),
            server,
            complaint,
        )
        return set()


def understand(answer):
    """The hosts that are allowed, and the reasons for the others. Raises ValueError."""
    allowed = answer.get("allowed")
    if not isinstance(allowed, list) or not all(isinstance(host, str) for host in allowed):
        raise ValueError("its answer does not say which hosts are allowed")
    return set(allowed), _reasons(answer.get("refused"))


def _reasons(refused):
    """Reasons are for the log only: an unreadable one does not spoil the answer."""
    entries = refused if isinstance(refused, list) else []
    return {
        entry["host"]: " ".join(str(entry.get("reason")).split())
        for entry in entries
        if isinstance(entry, dict) and isinstance(entry.get("host"), str)
    }


def _named(hosts, reasons):
    named = sorted(hosts)[:MAX_NAMED_HOSTS]
    text = ", ".join("%s (%s)" % (host, reasons.get(host, "no reason given")) for host in named)
    more = len(hosts) - len(named)
    return "%s and %d more" % (text, more) if more else text
