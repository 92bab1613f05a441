"""A gate in nova-api's pipeline: hosts are evacuated and un-forced only if Ringfence allows it."""

import json
import logging
import re

import webob
import webob.exc
from oslo_config import cfg

from ringfence_nova import inventory, options
from ringfence_nova.asked import Evacuation, what_is_asked
from ringfence_nova.hook import HookUnavailable

LOG = logging.getLogger(__name__)

PATH = "/nova/evacuate-check"
#: For a caller that may update services and sends this header, the other one has the gate's state.
PROBE_HEADER = "X-Ringfence-Probe"
GATE_HEADER = "X-Ringfence-Gate"
#: The end of the filter's name in `enabled_filters`, which may name its module too.
FILTER = "RingfenceFilter"
#: The longest reason that is shown to the caller.
MAX_REASON_CHARACTERS = 500
RETRY_AFTER_S = "5"

_FAULT_NAMES = {
    400: "badRequest",
    409: "conflictingRequest",
    413: "overLimit",
    503: "serviceUnavailable",
}
_VERSION_ASKED_FOR = re.compile(r"(?:^|,)\s*compute\s+(\d+\.\d+)\s*(?:,|$)", re.IGNORECASE)


def filter_factory(global_conf, **local_conf):
    """For api-paste.ini. The settings are in nova.conf, so that secrets are in one file."""
    section = options.settings()
    hook = options.hook_from(section)
    open_on_error = options.gate_is_open_on_error(section)

    def gate(app):
        return EvacuateGate(app, hook, section.cloud, open_on_error)

    return gate


class EvacuateGate:
    """Asks Ringfence before an evacuation or an un-forcing goes on to Nova; all else passes.

    A request that Nova will refuse by itself (the object is unknown, the caller has no right) goes
    on to Nova without a question, so that no caller learns more from the gate than from Nova.
    """

    def __init__(self, app, hook, cloud, open_on_error, nova=inventory):
        self._app = app
        self._hook = hook
        self._cloud = cloud
        self._open_on_error = open_on_error
        self._nova = nova

    def __call__(self, environ, start_response):
        request = webob.Request(environ)
        try:
            asked = what_is_asked(request)
            refusal = self._refusal(request, asked) if asked else None
        except webob.exc.HTTPException as error:
            refusal = _fault(request, error.status_int, error.detail or error.explanation)
        answer = refusal or self._app
        if PROBE_HEADER in request.headers:
            answer = self._probed(request, answer)
        return answer(environ, start_response)

    def _probed(self, request, answer):
        """The answer to the request, with the gate's state if the caller may know it."""
        response = request.get_response(answer)
        try:
            may_know = self._nova.may_update_services(request.environ.get("nova.context"))
        except Exception as error:
            LOG.warning("Whether a caller may know of the gate cannot be looked up: %s", error)
            may_know = False
        if may_know:
            told = {"cloud": self._cloud, "hook": self._how_the_hook_is(), "filter": _filter()}
            response.headers[GATE_HEADER] = json.dumps(told, ensure_ascii=True)
        return response

    def _how_the_hook_is(self):
        question = {"cloud": self._cloud, "host": "ringfence-probe", "action": "unforce"}
        try:
            self._hook.ask(PATH, question, understand)
        except HookUnavailable as error:
            return str(error)
        return "answers"

    def _refusal(self, request, asked):
        try:
            question = self._question(request.environ.get("nova.context"), asked)
        except inventory.NotThere:
            return None
        if question is None:
            return None
        complaint = None
        try:
            allowed, reason, generation = self._hook.ask(PATH, question, understand)
        except HookUnavailable as error:
            complaint = str(error)
        # Not within the except clause: oslo.log would add the exception to the log line.
        if complaint is not None:
            return self._without_an_answer(request, question, complaint)
        LOG.info(
            "Ringfence %s %s (generation %s): %s",
            "allows" if allowed else "refuses",
            _named(question),
            generation,
            reason,
        )
        return None if allowed else _fault(request, 409, _refused_because(question, reason))

    def _question(self, context, asked):
        """None where Nova will refuse by itself."""
        if isinstance(asked, Evacuation):
            return self._about_evacuation(context, asked)
        return self._about_unforcing(context, asked)

    def _about_evacuation(self, context, asked):
        question = {"cloud": self._cloud, "server": asked.server_id, "host": None}
        try:
            server = self._nova.find_server(context, asked.server_id)
            if not self._nova.may_evacuate(context, server):
                return None
            question.update(server=server.uuid, host=server.host)
        except inventory.NotThere:
            raise
        except Exception as error:
            # Ringfence answers no to a question without a host, and tells the caller to try again.
            # It could only ask Nova's API, which is behind this gate and reads this database too.
            LOG.warning("The host of server %s cannot be looked up: %s", asked.server_id, error)
        return question

    def _about_unforcing(self, context, asked):
        question = {"cloud": self._cloud, "host": asked.host, "action": "unforce"}
        try:
            if not self._nova.may_update_services(context):
                return None
            if asked.service_uuid is None:
                return question if asked.binary == inventory.COMPUTE else None
            service = self._nova.find_service(context, asked.service_uuid)
            question.update(host=service.host)
            return question if service.binary == inventory.COMPUTE else None
        except inventory.NotThere:
            raise
        except Exception as error:
            LOG.warning("The host of a service cannot be looked up: %s", error)
        return dict(question, service=asked.service_uuid)

    def _without_an_answer(self, request, question, complaint):
        if self._open_on_error:
            LOG.warning(
                "Ringfence cannot be asked; %s passes unchecked: %s", _named(question), complaint
            )
            return None
        LOG.error("Ringfence cannot be asked; %s is refused: %s", _named(question), complaint)
        return _fault(
            request, 503, "Ringfence cannot be asked whether this is safe. Please try again later."
        )


def _filter():
    """Whether nova.conf here, which may not be nova-scheduler's, enables the filter."""
    try:
        enabled = cfg.CONF.filter_scheduler.enabled_filters
    except cfg.Error:
        return "unknown"
    return "enabled" if any(name.endswith(FILTER) for name in enabled) else "not enabled"


def understand(answer):
    """Whether the request is allowed, the reason, and the generation. Raises ValueError."""
    allowed = answer.get("allowed")
    if not isinstance(allowed, bool):
        raise ValueError("its answer does not say whether it is allowed")
    reason = " ".join(str(answer.get("reason") or "no reason given").split())
    generation = answer.get("generation")
    if not isinstance(generation, int):
        generation = None
    return allowed, reason[:MAX_REASON_CHARACTERS], generation


def _named(question):
    if "server" in question:
        return "the evacuation of server %s from host %s" % (question["server"], question["host"])
    return "un-forcing host %s" % question["host"]


def _refused_because(question, reason):
    if "server" in question:
        return "Cannot 'evacuate' instance %s: %s" % (question["server"], reason)
    return "Unable to force up host %s: %s" % (question["host"], reason)


def _fault(request, status, message):
    """An answer in the form of Nova's own errors."""
    body = {_FAULT_NAMES.get(status, "computeFault"): {"code": status, "message": message}}
    response = webob.Response(
        status=status, json_body=body, content_type="application/json", charset="UTF-8"
    )
    if status == 503:
        response.headers["Retry-After"] = RETRY_AFTER_S
    version = _VERSION_ASKED_FOR.search(request.headers.get("OpenStack-API-Version", ""))
    if version:
        response.headers["OpenStack-API-Version"] = "compute " + version.group(1)
        response.headers["X-OpenStack-Nova-API-Version"] = version.group(1)
        response.headers["Vary"] = "OpenStack-API-Version, X-OpenStack-Nova-API-Version"
    return response
