"""The gate in front of an application that records the requests which reach it."""

import io
import json
import logging
import types
import unittest

from ringfence_nova.hook import Hook
from ringfence_nova.inventory import NotThere
from tests import hook_server as server

try:
    import webob
    import webob.exc

    from ringfence_nova import asked
    from ringfence_nova.middleware import EvacuateGate
except ImportError as error:
    raise unittest.SkipTest("the libraries of Nova are not installed: %s" % error)

SERVER = "11111111-1111-4111-8111-111111111111"
SERVICE = "22222222-2222-4222-8222-222222222222"
ACTION = "/servers/%s/action" % SERVER
YES = server.answer({"allowed": True, "reason": "FENCED", "generation": 7})
NO = server.answer({"allowed": False, "reason": "host c1 is not fenced", "generation": 7})


class Nova:
    """The application behind the gate, with the inventory and the rights that the gate asks for."""

    def __init__(self):
        self.bodies = []
        self.may = True
        self.fails_with = None
        self.binary = "nova-compute"

    def __call__(self, environ, start_response):
        request = webob.Request(environ)
        self.bodies.append(request.body)
        return webob.Response(status=200, body=b"nova")(environ, start_response)

    def find_server(self, context, server_id):
        if self.fails_with:
            raise self.fails_with
        return types.SimpleNamespace(uuid=SERVER, host="c1", user_id="u", project_id="p")

    def find_service(self, context, service_uuid):
        if self.fails_with:
            raise self.fails_with
        return types.SimpleNamespace(host="c1", binary=self.binary)

    def may_evacuate(self, context, server):
        return self.may

    def may_update_services(self, context):
        return self.may


class Case(unittest.TestCase):
    def setUp(self):
        self.nova = Nova()

    def send(self, url, path, body, method="POST", open_on_error=False, headers=None, **environ):
        hook = Hook([url], lambda: "rf_secret", timeout_s=0.5)
        self.addCleanup(hook.close)
        gate = EvacuateGate(self.nova, hook, "east", open_on_error, nova=self.nova)
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = webob.Request.blank(path, method=method, body=raw, headers=headers or {})
        request.content_type = "application/json"
        request.environ.update(environ)
        return request.get_response(gate)

    def reached_nova(self):
        return len(self.nova.bodies)


class Probes(Case):
    def probe(self, url):
        response = self.send(url, "/os-services", b"", method="GET", headers={"X-Ringfence-Probe": "1"})
        told = response.headers.get("X-Ringfence-Gate")
        return response, told and json.loads(told)

    def test_a_caller_that_may_update_services_gets_the_state_of_the_gate(self):
        with server.HookServer(NO) as peer:
            response, told = self.probe(peer.url)
        self.assertEqual(response.body, b"nova")
        self.assertEqual(told["cloud"], "east")
        self.assertEqual(told["hook"], "answers")
        self.assertIn(told["filter"], ("enabled", "not enabled", "unknown"))

    def test_a_hook_that_does_not_answer_is_reported(self):
        response, told = self.probe("http://127.0.0.1:9")
        self.assertEqual(response.status_int, 200)
        self.assertIn("127.0.0.1:9", told["hook"])

    def test_other_callers_get_no_state_of_the_gate(self):
        self.nova.may = False
        response, told = self.probe("http://127.0.0.1:9")
        self.assertEqual((response.status_int, told), (200, None))

    def test_the_probe_header_does_not_bypass_the_gate(self):
        with server.HookServer(NO) as peer:
            response = self.send(
                peer.url, ACTION, {"evacuate": {}}, headers={"X-Ringfence-Probe": "1"}
            )
        self.assertEqual((response.status_int, self.reached_nova()), (409, 0))

    def test_a_request_without_the_probe_header_gets_no_state(self):
        response = self.send("http://127.0.0.1:9", "/os-services", b"", method="GET")
        self.assertNotIn("X-Ringfence-Gate", response.headers)


class Evacuations(Case):
    def test_an_allowed_evacuation_reaches_nova_unchanged(self):
        body = b' {"evacuate" : {"host":"c2"}}\n'
        with server.HookServer(YES) as peer:
            response = self.send(peer.url, ACTION, body)
        self.assertEqual((response.status_int, self.nova.bodies), (200, [body]))
        self.assertEqual(
            peer.questions,
            [("/nova/evacuate-check", {"cloud": "east", "server": SERVER, "host": "c1"})],
        )

    def test_a_refused_evacuation_gets_novas_409(self):
        with server.HookServer(NO) as peer:
            response = self.send(peer.url, ACTION, {"evacuate": {}})
        message = "Cannot 'evacuate' instance %s: host c1 is not fenced" % SERVER
        self.assertEqual(response.status_int, 409)
        self.assertEqual(response.json, {"conflictingRequest": {"code": 409, "message": message}})
        self.assertEqual(response.content_type, "application/json")
        self.assertEqual(self.reached_nova(), 0)

    def test_every_form_of_the_request_is_recognized(self):
        paths = [
            ACTION,
            ACTION + "/",
            "/38b7c4fe79e24ca1be6a6f335ca8c58e" + ACTION,
            "/servers/%s/%%61ction" % SERVER,
        ]
        bodies = [b'{"evacuate":{}}', b'{"evacuate":null}', b'{"evacu\\u0061te":{"force":true}}']
        for path in paths:
            for body in bodies:
                with self.subTest(path=path, body=body), server.HookServer(NO) as peer:
                    self.assertEqual(self.send(peer.url, path, body).status_int, 409)

    def test_a_refusal_has_the_requested_api_version(self):
        with server.HookServer(NO) as peer:
            headers = {"OpenStack-API-Version": "volume 3.60, compute 2.68"}
            response = self.send(peer.url, ACTION, {"evacuate": {}}, headers=headers)
        self.assertEqual(response.headers["OpenStack-API-Version"], "compute 2.68")
        self.assertEqual(response.headers["X-OpenStack-Nova-API-Version"], "2.68")

    def test_an_unknown_server_is_left_to_nova(self):
        self.nova.fails_with = NotThere("no")
        with server.HookServer(NO) as peer:
            self.send(peer.url, ACTION, {"evacuate": {}})
        self.assertEqual((self.reached_nova(), peer.questions), (1, []))

    def test_a_caller_without_the_right_is_left_to_nova(self):
        self.nova.may = False
        with server.HookServer(NO) as peer:
            self.send(peer.url, ACTION, {"evacuate": {}})
        self.assertEqual((self.reached_nova(), peer.questions), (1, []))

    def test_a_host_that_cannot_be_looked_up_is_left_to_ringfence(self):
        self.nova.fails_with = RuntimeError("no database")
        with server.HookServer(NO) as peer:
            self.assertEqual(self.send(peer.url, ACTION, {"evacuate": {}}).status_int, 409)
        self.assertEqual(peer.questions[0][1], {"cloud": "east", "server": SERVER, "host": None})

    def test_a_decision_is_logged_in_one_line(self):
        said = {"allowed": False, "reason": "a\nb" * 1000, "generation": "x\ny"}
        with server.HookServer(server.answer(said)) as peer:
            with self.assertLogs("ringfence_nova.middleware", logging.INFO) as logs:
                response = self.send(peer.url, ACTION, {"evacuate": {}})
        self.assertEqual(len(logs.output), 1)
        self.assertNotIn("\n", logs.output[0])
        self.assertIn("from host c1", logs.output[0])
        self.assertLess(len(response.json["conflictingRequest"]["message"]), 1000)


class WithoutAnAnswer(Case):
    BROKEN = [
        server.answer({"allowed": True}, status=500),
        server.answer({"allowed": True}, status=401),
        server.answer({"allowed": "true"}),
        server.answer({"allowed": 1}),
        server.answer({}),
        server.raw(b"yes"),
        server.silence(2),
    ]

    def test_a_closed_gate_without_an_answer_is_503_in_novas_form(self):
        for number, behave in enumerate(self.BROKEN):
            with self.subTest(number=number), server.HookServer(behave) as peer:
                with self.assertLogs("ringfence_nova.middleware", logging.ERROR) as logs:
                    response = self.send(peer.url, ACTION, {"evacuate": {}})
                self.assertEqual(response.status_int, 503)
                self.assertEqual(response.json["serviceUnavailable"]["code"], 503)
                self.assertIn("Retry-After", response.headers)
                self.assertNotIn("rf_secret", logs.output[0] + response.text)
        self.assertEqual(self.reached_nova(), 0)

    def test_an_open_gate_without_an_answer_lets_the_request_pass(self):
        for number, behave in enumerate(self.BROKEN):
            with self.subTest(number=number), server.HookServer(behave) as peer:
                with self.assertLogs("ringfence_nova.middleware", logging.WARNING):
                    response = self.send(peer.url, ACTION, {"evacuate": {}}, open_on_error=True)
                self.assertEqual(response.status_int, 200)

    def test_an_open_gate_obeys_a_refusal(self):
        with server.HookServer(NO) as peer:
            response = self.send(peer.url, ACTION, {"evacuate": {}}, open_on_error=True)
        self.assertEqual(response.status_int, 409)


class Unforcing(Case):
    OLD = {"host": "c1", "binary": "nova-compute", "forced_down": False}

    def put(self, behave, path, body, **more):
        with server.HookServer(behave) as peer:
            response = self.send(peer.url, path, body, method="PUT", **more)
        return response, [question for _, question in peer.questions]

    def test_unforcing_a_host_is_refused_by_the_gate(self):
        question = {"cloud": "east", "host": "c1", "action": "unforce"}
        for path, body in (
            ("/os-services/" + SERVICE, {"forced_down": False}),
            ("/os-services/" + SERVICE, {"forced_down": "no", "status": "enabled"}),
            ("/38b7c4fe79e24ca1be6a6f335ca8c58e/os-services/" + SERVICE, {"forced_down": "0"}),
            ("/os-services/force-down", self.OLD),
        ):
            with self.subTest(path=path, body=body):
                response, questions = self.put(NO, path, body)
                self.assertEqual(response.status_int, 409)
                self.assertEqual(
                    response.json["conflictingRequest"]["message"],
                    "Unable to force up host c1: host c1 is not fenced",
                )
                self.assertEqual(questions, [question])
        self.assertEqual(self.reached_nova(), 0)

    def test_an_allowed_unforcing_reaches_nova(self):
        response, _ = self.put(YES, "/os-services/" + SERVICE, {"forced_down": False})
        self.assertEqual(
            (response.status_int, self.nova.bodies), (200, [b'{"forced_down": false}'])
        )

    def test_other_changes_of_a_service_need_no_question(self):
        for path, body in (
            ("/os-services/" + SERVICE, {"forced_down": True}),
            ("/os-services/" + SERVICE, {"forced_down": "yes", "status": "disabled"}),
            ("/os-services/" + SERVICE, {"status": "enabled"}),
            ("/os-services/force-down", dict(self.OLD, forced_down=True)),
            ("/os-services/force-down", dict(self.OLD, binary="nova-scheduler")),
            ("/os-services/enable", {"host": "c1", "binary": "nova-compute"}),
        ):
            with self.subTest(body=body):
                response, questions = self.put(NO, path, body)
                self.assertEqual((response.status_int, questions), (200, []))

    def test_services_other_than_computes_are_left_to_nova(self):
        self.nova.binary = "nova-scheduler"
        response, questions = self.put(NO, "/os-services/" + SERVICE, {"forced_down": False})
        self.assertEqual((response.status_int, questions), (200, []))

    def test_a_caller_without_the_right_is_left_to_nova(self):
        self.nova.may = False
        for path in ("/os-services/" + SERVICE, "/os-services/force-down"):
            response, questions = self.put(NO, path, self.OLD)
            self.assertEqual((response.status_int, questions), (200, []))

    def test_a_host_that_cannot_be_looked_up_is_left_to_ringfence(self):
        self.nova.fails_with = RuntimeError("no database")
        response, questions = self.put(NO, "/os-services/" + SERVICE, {"forced_down": False})
        self.assertEqual(response.status_int, 409)
        self.assertEqual(
            questions,
            [{"cloud": "east", "host": None, "action": "unforce", "service": SERVICE}],
        )

    def test_a_closed_gate_without_an_answer_is_503(self):
        response, _ = self.put(server.raw(b""), "/os-services/" + SERVICE, {"forced_down": False})
        self.assertEqual(response.status_int, 503)


class Others(Case):
    def test_other_requests_need_no_question(self):
        for method, path, body in (
            ("POST", ACTION, {"reboot": {"type": "HARD"}}),
            ("POST", ACTION, {"os-resetState": {"state": "error"}}),
            ("POST", ACTION, ["evacuate"]),
            ("POST", ACTION, "evacuate"),
            ("POST", ACTION, b"{"),
            ("POST", ACTION, b""),
            ("POST", ACTION, b"\xff\xfe\x00"),
            ("PUT", ACTION, {"evacuate": {}}),
            ("POST", "/servers", {"evacuate": {}}),
            ("POST", "/servers/%s/metadata" % SERVER, {"evacuate": {}}),
            ("GET", "/os-services", b""),
            ("DELETE", "/os-services/" + SERVICE, b""),
        ):
            with self.subTest(method=method, path=path, body=body):
                with server.HookServer(NO) as peer:
                    response = self.send(peer.url, path, body, method=method)
                self.assertEqual((response.status_int, peer.questions), (200, []))
                raw = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.assertEqual(self.nova.bodies[-1], raw)

    def test_the_body_of_another_request_is_not_read(self):
        class Untouchable(io.BytesIO):
            def read(self, *_):
                raise AssertionError("the gate has read the body")

        environ = {"wsgi.input": Untouchable(), "CONTENT_LENGTH": "100"}
        hook = Hook(["http://127.0.0.1:1"], lambda: "t")
        seen = []

        def app(environ, start_response):
            seen.append(environ["wsgi.input"])
            return webob.Response()(environ, start_response)

        for method, path in (("POST", "/servers"), ("PUT", "/flavors/1"), ("DELETE", ACTION)):
            request = webob.Request.blank(path, method=method)
            request.environ.update(environ)
            request.get_response(EvacuateGate(app, hook, "east", False, nova=self.nova))
        self.assertEqual(seen, [environ["wsgi.input"]] * 3)


class Bodies(Case):
    def test_a_body_over_the_limit_is_refused(self):
        body = b'{"evacuate": {}' + b" " * asked.MAX_BODY_BYTES + b"}"
        with server.HookServer(YES) as peer:
            response = self.send(peer.url, ACTION, body)
        self.assertEqual((response.status_int, list(response.json)), (413, ["overLimit"]))
        self.assertEqual(self.reached_nova(), 0)

    def test_a_body_of_the_largest_size_is_accepted(self):
        body = b'{"evacuate": {}}'.ljust(asked.MAX_BODY_BYTES)
        with server.HookServer(YES) as peer:
            self.send(peer.url, ACTION, body)
        self.assertEqual(self.nova.bodies, [body])

    def test_a_body_without_a_length_is_read_in_pieces_and_passed_on_whole(self):
        class Pieces(io.BytesIO):
            def read(self, size=-1):
                return super().read(min(size, 5))

        text = b'{"evacuate": {"host": "c2"}}'
        more = {"wsgi.input": Pieces(text), "wsgi.input_terminated": True, "CONTENT_LENGTH": ""}
        with server.HookServer(NO) as peer:
            self.assertEqual(self.send(peer.url, ACTION, b"", **more).status_int, 409)
        more["wsgi.input"] = Pieces(text)
        with server.HookServer(YES) as peer:
            self.send(peer.url, ACTION, b"", **more)
        self.assertEqual(self.nova.bodies, [text])

    def test_a_body_over_an_outer_limit_gets_that_limits_answer(self):
        class Limited(io.BytesIO):
            def read(self, size=-1):
                raise webob.exc.HTTPRequestEntityTooLarge(explanation="too large")

        more = {"wsgi.input": Limited(), "wsgi.input_terminated": True, "CONTENT_LENGTH": ""}
        with server.HookServer(YES) as peer:
            response = self.send(peer.url, ACTION, b"", **more)
        self.assertEqual(response.status_int, 413)

    def test_a_body_with_too_deep_nesting_is_refused(self):
        body = b'{"evacuate": ' + b"[" * 200000
        with server.HookServer(YES) as peer:
            self.assertEqual(self.send(peer.url, ACTION, body).status_int, 400)
        self.assertEqual(self.reached_nova(), 0)
