# keystone.py PORT [CERTIFICATE KEY]: serves Keystone's API on loopback.
import sys

from werkzeug.serving import run_simple

port = int(sys.argv[1])
pair = tuple(sys.argv[2:4]) or None
sys.argv = ["keystone"]

from keystone.server.wsgi import initialize_public_application

run_simple("127.0.0.1", port, initialize_public_application(), threaded=True, ssl_context=pair)
