"""Questions to Ringfence's scheduler hook: several addresses, kept connections, bounded waits.

This module uses only the standard library. Connections are opened when they are needed, so that a
process may fork after it has made a `Hook`. Several threads (or green threads) may use a `Hook` at
once.
"""

import collections
import http.client
import json
import logging
import ssl
import time
import urllib.parse

from ringfence_nova import wire

LOG = logging.getLogger(__name__)

#: The hook's answers are shorter.
MAX_ANSWER_BYTES = 4 * 1024 * 1024
#: The text of an error may be the server's own, so it is cut.
MAX_COMPLAINT_CHARACTERS = 200
#: How many idle connections to each address are kept open; more may be in use.
MAX_IDLE_CONNECTIONS = 8

#: The errors of a connection that the hook closed while it was idle: it did not read the question.
_CLOSED_WHILE_IDLE = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)


class HookUnavailable(Exception):
    """No address gave a usable answer."""


class Endpoint:
    """One address of the hook, with its idle connections."""

    def __init__(self, url, tls):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("an address of Ringfence's hook begins with http:// or https://")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError(
                "an address of Ringfence's hook has a host, a port and a path, no more"
            )
        self.tls = tls if parts.scheme == "https" else None
        self.host = parts.hostname
        self.port = parts.port or (443 if self.tls else 80)
        self.prefix = parts.path.rstrip("/")
        self._idle = collections.deque(maxlen=MAX_IDLE_CONNECTIONS)

    def __str__(self):
        return "%s:%d" % (self.host, self.port)

    def new_connection(self):
        return wire.TimedConnection(self.host, self.port, self.tls)

    def idle_connection(self):
        """The connection that was used last, or None."""
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def keep(self, connection):
        if len(self._idle) < MAX_IDLE_CONNECTIONS:
            self._idle.append(connection)
        else:
            connection.close()

    def close(self):
        connection = self.idle_connection()
        while connection is not None:
            connection.close()
            connection = self.idle_connection()


class Hook:
    """Asks the hook at one of its addresses.

    `timeout_s` is for one address, from its connection to the last byte of its answer. `read_token`
    is called for each question, so that a token may be renewed while the process runs.
    """

    def __init__(self, urls, read_token, timeout_s=2.0, ca_file=None):
        if not urls:
            raise ValueError("no address of Ringfence's hook is configured")
        tls = None
        if any(url.startswith("https:") for url in urls):
            tls = ssl.create_default_context(cafile=ca_file)
        self._endpoints = [Endpoint(url, tls) for url in urls]
        self._read_token = read_token
        self._timeout_s = timeout_s
        # The address that answered last is asked first, so that a dead address delays one question.
        self._preferred = 0

    def ask(self, path, question, understand):
        """The result of `understand` for the answer (a decoded JSON object).

        If `understand` raises ValueError for an answer, the next address is asked. Raises
        HookUnavailable when no address is left.
        """
        complaints = []
        headers = self._headers()
        body = json.dumps(question).encode()
        for index in self._order():
            endpoint = self._endpoints[index]
            try:
                answer = understand(self._ask_one(endpoint, path, body, headers))
            except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
                complaints.append("%s: %s" % (endpoint, _in_one_line(error)))
                continue
            self._preferred = index
            return answer
        raise HookUnavailable("; ".join(complaints))

    def close(self):
        """Closes the idle connections. A later question opens a new one."""
        for endpoint in self._endpoints:
            endpoint.close()

    def _order(self):
        count = len(self._endpoints)
        first = self._preferred
        return [(first + step) % count for step in range(count)]

    def _ask_one(self, endpoint, path, body, headers):
        deadline = time.monotonic() + self._timeout_s
        connection = endpoint.idle_connection()
        if connection is not None:
            connection.deadline = deadline
            try:
                return _converse(endpoint, connection, path, body, headers)
            except _CLOSED_WHILE_IDLE:
                LOG.debug("Ringfence's hook at %s had closed an idle connection", endpoint)
        connection = endpoint.new_connection()
        connection.deadline = deadline
        return _converse(endpoint, connection, path, body, headers)

    def _headers(self):
        try:
            token = self._read_token()
        except (OSError, ValueError) as error:
            raise HookUnavailable("its token cannot be read: %s" % error)
        return {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": "ringfence-nova",
            "X-Auth-Token": token,
        }


def _converse(endpoint, connection, path, body, headers):
    """One question and its answer. A connection that can be used again is kept."""
    kept = False
    try:
        connection.request("POST", endpoint.prefix + path, body, headers)
        response = connection.getresponse()
        text = response.read(MAX_ANSWER_BYTES + 1)
        if len(text) > MAX_ANSWER_BYTES:
            raise ValueError("its answer is longer than %d bytes" % MAX_ANSWER_BYTES)
        kept = response.isclosed() and not response.will_close
    finally:
        if kept:
            endpoint.keep(connection)
        else:
            connection.close()
    if response.status != 200:
        raise ValueError("it answered %d %s" % (response.status, response.reason))
    return _json_object(text)


def _in_one_line(error):
    return " ".join(str(error).split())[:MAX_COMPLAINT_CHARACTERS] or type(error).__name__


def _json_object(text):
    try:
        answer = json.loads(text)
    except ValueError:
        raise ValueError("its answer is not JSON")
    if not isinstance(answer, dict):
        raise ValueError("its answer is not a JSON object")
    return answer
