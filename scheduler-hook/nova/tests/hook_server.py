"""A real HTTP server in the hook's place, with scripted answers, which records its requests."""

import json
import socket
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class HookServer(ThreadingHTTPServer):
    """`behave(handler, question)` answers one request; by default everything is allowed."""

    daemon_threads = True
    # More than a test sends at once: the system drops connections beyond this.
    request_queue_size = 128

    def __init__(self, behave=None, tls=None):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behave = behave or answer({"allowed": True, "reason": "", "generation": 1})
        self.questions = []
        self.headers_seen = []
        self.connections = 0
        self.scheme = "http"
        if tls:
            certificate, key = tls
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            self.socket = context.wrap_socket(self.socket, server_side=True)
            self.scheme = "https"

    @property
    def url(self):
        return "%s://127.0.0.1:%d" % (self.scheme, self.server_address[1])

    def handle_error(self, request, client_address):
        """Some tests close their connections early."""

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.server.connections += 1

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        question = json.loads(body)
        self.server.questions.append((self.path, question))
        self.server.headers_seen.append(dict(self.headers.items()))
        self.server.behave(self, question)

    def send(self, status, body, **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def answer(body, status=200, **headers):
    """Answers every question with this JSON."""
    text = json.dumps(body).encode()
    return lambda handler, question: handler.send(status, text, **headers)


def raw(text, status=200):
    return lambda handler, question: handler.send(status, text)


def only(*allowed):
    """Allows these hosts, and refuses all others."""

    def behave(handler, question):
        hosts = question["hosts"]
        refused = [{"host": host, "reason": "fenced"} for host in hosts if host not in allowed]
        said = {"allowed": [host for host in hosts if host in allowed], "refused": refused}
        handler.send(200, json.dumps(dict(said, as_of="2026-01-01T00:00:00Z")).encode())

    return behave


def silence(seconds):
    return lambda handler, question: time.sleep(seconds)


def drip(text, pause_s):
    """Sends one byte at a time, with a pause between two."""

    def behave(handler, question):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        for byte in text:
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
            time.sleep(pause_s)

    return behave


def hang_up(handler, question):
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def unreachable_address():
    """An address that refuses connections."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return "http://127.0.0.1:%d" % found.getsockname()[1]
