# keystone.py PORT: serves Keystone's API on loopback.
import sys

from werkzeug.serving import run_simple

port = int(sys.argv[1])
sys.argv = ["keystone"]

from keystone.server.wsgi import initialize_public_application

run_simple("127.0.0.1", port, initialize_public_application(), threaded=True)
