"""Prints each notification of oslo.messaging as a line of JSON, until the process is ended.

Arguments: the transport's URL, the exchange, the topic, and a pool if it has a queue of its own. Then its first line says that it listens.
"""

import json
import sys

import oslo_messaging
from oslo_config import cfg


class Endpoint:
    def _say(self, priority, ctxt, publisher_id, event_type, payload, metadata):
        line = {
            "priority": priority,
            "publisher_id": publisher_id,
            "event_type": event_type,
            "payload": payload,
            "message_id": metadata["message_id"],
            "timestamp": metadata["timestamp"],
        }
        # One write, because other threads print as well.
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

    def info(self, *heard):
        self._say("INFO", *heard)

    def error(self, *heard):
        self._say("ERROR", *heard)


url, exchange, topic = sys.argv[1:4]
pool = sys.argv[4] if len(sys.argv) > 4 else None
conf = cfg.ConfigOpts()
conf([], project="listener")
transport = oslo_messaging.get_notification_transport(conf, url=url)
target = oslo_messaging.Target(exchange=exchange, topic=topic)
listener = oslo_messaging.get_notification_listener(
    transport, [target], [Endpoint()], executor="threading", pool=pool
)
# More threads could swap the order of two events.
listener.start(override_pool_size=1)
if pool:
    print(json.dumps({"listens": True}), flush=True)
listener.wait()
