"""stand_in.py image|network PORT: the calls that Nova makes to Glance (one image) or to Neutron (no networks)."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

IMAGE = {
    "id": "11111111-1111-4111-8111-111111111111",
    "name": "image",
    "status": "active",
    "visibility": "public",
    "container_format": "bare",
    "disk_format": "raw",
    "size": 1,
    "min_disk": 0,
    "min_ram": 0,
    "protected": False,
    "checksum": None,
    "owner": None,
    "tags": [],
    "virtual_size": None,
    "os_hidden": False,
    "created_at": "2024-01-01T00:00:00Z",
    "updated_at": "2024-01-01T00:00:00Z",
}
kind, port = sys.argv[1], int(sys.argv[2])


def versions(number, path):
    link = {"rel": "self", "href": "http://127.0.0.1:%d%s" % (port, path)}
    return {"versions": [{"id": number, "status": "CURRENT", "links": [link]}]}


def image(path):
    if not path:
        return 300, versions("v2.9", "/v2/")
    if path[-1] == "images":
        return 200, {"images": [IMAGE]}
    if path[-2:] == ["images", IMAGE["id"]]:
        return 200, IMAGE
    if path[-2:] == ["schemas", "image"]:
        properties = {name: {} for name in IMAGE}
        return 200, {"name": "image", "properties": properties, "additionalProperties": {"type": "string"}}
    return 404, {}


def network(path):
    if path in ([], ["v2.0"]):
        return 200, versions("v2.0", "/v2.0")
    if path[-2:-1] == ["quotas"]:
        return 200, {"quota": {"port": -1}}
    return 200, {path[-1].replace("-", "_"): []}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = [part for part in self.path.split("?")[0].split("/") if part]
        status, body = {"image": image, "network": network}[kind](path)
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
