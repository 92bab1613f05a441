"""Questions to Ringfence's scheduler hook: several addresses, kept connections, bounded waits.

Nothing but the standard library is used. Connections are opened when they are needed, so that a
process may fork after a `Hook` was made, and a `Hook` may be used by several threads (or green
threads) at once.
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

#: An answer that is longer than this is not one of the hook's.
MAX_ANSWER_BYTES = 4 * 1024 * 1024
#: What is said of a failure may be what the other side sent.
MAX_COMPLAINT_CHARACTERS = 200
#: So many connections are kept open to each address; more may be in use.
MAX_IDLE_CONNECTIONS = 8

#: How a connection fails that the other side closed while it was idle: the question was never read.
_CLOSED_WHILE_IDLE = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)


class HookUnavailable(Exception):
    """No address gave an answer that can be used."""


class Endpoint:
    """One address of the hook, with the connections to it that wait for the next question."""

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
        # The address that answered last is asked first: one that is down costs its time once.
        self._preferred = 0

    def ask(self, path, question, understand):
        """What `understand` makes of the answer (a decoded JSON object).

        `understand` raises ValueError for an answer that it cannot use; the next address is asked
        then. Raises HookUnavailable when there is none left.
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
        """Closes what waits for the next question, which may be asked nevertheless."""
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
    """One question and its answer. The connection is kept if it can be used again."""
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
