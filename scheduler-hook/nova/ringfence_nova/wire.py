"""An HTTP connection with one deadline for connecting, sending and receiving.

The standard library limits each read by itself, so that it waits for ever for a peer that sends a
byte now and then. Here each connect, read and write gets the time that is left.
"""

import http.client
import io
import socket
import time


class TimedConnection(http.client.HTTPConnection):
    """Set `deadline` (monotonic) before each request. `tls` is an SSLContext or None."""

    def __init__(self, host, port, tls=None):
        super().__init__(host, port)
        self.deadline = None
        self._tls = tls

    def time_left(self):
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise socket.timeout("it did not answer in time")
        return left

    def connect(self):
        plain = self._connect_to_one_of_its_addresses()
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sock = _TimedSocket(self._encrypted(plain), self)
        except BaseException:
            plain.close()
            raise

    def _connect_to_one_of_its_addresses(self):
        failure = OSError("its name has no address")
        # By position: the arguments have other names under eventlet, in which Nova runs.
        found = socket.getaddrinfo(self.host, self.port, socket.AF_UNSPEC, socket.SOCK_STREAM)
        for family, kind, protocol, _, address in found:
            candidate = socket.socket(family, kind, protocol)
            try:
                candidate.settimeout(self.time_left())
                candidate.connect(address)
                return candidate
            except OSError as error:
                candidate.close()
                failure = error
        raise failure

    def _encrypted(self, plain):
        if self._tls is None:
            return plain
        plain.settimeout(self.time_left())
        return self._tls.wrap_socket(plain, server_hostname=self.host)


class _TimedSocket:
    """The methods of a socket that http.client uses."""

    def __init__(self, plain, connection):
        self._plain = plain
        self._connection = connection

    def sendall(self, data):
        self._plain.settimeout(self._connection.time_left())
        self._plain.sendall(data)

    def makefile(self, mode, *_args, **_kwargs):
        # The file keeps the socket open, so that an answer can be read to its end although
        # http.client closes the connection ("Connection: close") after the headers.
        raw = self._plain.makefile(mode, buffering=0)
        return io.BufferedReader(_TimedReader(raw, self._plain, self._connection))

    def close(self):
        self._plain.close()


class _TimedReader(io.RawIOBase):
    def __init__(self, raw, plain, connection):
        self._raw = raw
        self._plain = plain
        self._connection = connection

    def readable(self):
        return True

    def readinto(self, buffer):
        self._plain.settimeout(self._connection.time_left())
        return self._raw.readinto(buffer)

    def close(self):
        self._raw.close()
        super().close()
