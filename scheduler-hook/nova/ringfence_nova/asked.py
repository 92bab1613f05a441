"""Which requests to nova-api put a host's servers, or the host itself, back into use."""

import json
import re

import webob.exc
from oslo_utils import strutils

#: Nova's own limit is 112 KiB unless configured; a longer body is refused.
MAX_BODY_BYTES = 1024 * 1024

_SERVER_ACTION = re.compile(r"(?:^|/)servers/([^/]+)/action/*$")
_SERVICE = re.compile(r"(?:^|/)os-services/([^/]+)/*$")
#: Before 2.53 the path named the action, and the body the host.
_OLD_FORCE_DOWN = "force-down"


class Evacuation:
    def __init__(self, server_id):
        self.server_id = server_id


class Unforcing:
    """The service is named by its UUID or, before 2.53, by host and binary."""

    def __init__(self, service_uuid=None, host=None, binary=None):
        self.service_uuid = service_uuid
        self.host = host
        self.binary = binary


def what_is_asked(request):
    """An Evacuation, an Unforcing, or None for any other request, whose body is not read."""
    if request.method == "POST":
        match = _SERVER_ACTION.search(request.path_info)
        read = _evacuation
    elif request.method == "PUT":
        match = _SERVICE.search(request.path_info)
        read = _unforcing
    else:
        return None
    return read(match.group(1), _json_body(request)) if match else None


def _evacuation(server_id, body):
    return Evacuation(server_id) if "evacuate" in body else None


def _unforcing(named, body):
    if "forced_down" not in body or strutils.bool_from_string(body["forced_down"]):
        return None
    if named == _OLD_FORCE_DOWN:
        return Unforcing(host=body.get("host"), binary=body.get("binary"))
    return Unforcing(service_uuid=named)


def _json_body(request):
    """The body if it is a JSON object, else an empty one. Nova reads the bytes again."""
    if not request.is_body_readable:
        return {}
    raw = _read(request.body_file)
    if len(raw) > MAX_BODY_BYTES:
        raise webob.exc.HTTPRequestEntityTooLarge("The request is too large.")
    request.body = raw
    try:
        body = json.loads(raw)
    except ValueError:
        return {}
    except RecursionError:
        raise webob.exc.HTTPBadRequest("The request is nested too deeply.")
    return body if isinstance(body, dict) else {}


def _read(file):
    """At most one byte more than is allowed. One read may return only a part, as with chunks."""
    parts = []
    left = MAX_BODY_BYTES + 1
    while left > 0:
        part = file.read(left)
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
