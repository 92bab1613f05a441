"""The filter, run by Nova's own filter handler."""

import logging
import types
import unittest

from tests import hook_server as server

try:
    from nova import objects
    from nova.scheduler import filters
    from oslo_config import cfg

    from ringfence_nova import options
    from ringfence_nova.filter import RingfenceFilter
except ImportError as error:
    raise unittest.SkipTest("Nova is not installed: %s" % error)

SERVER = "11111111-1111-4111-8111-111111111111"


def setUpModule():
    objects.register_all()


def host(name, node=None):
    return types.SimpleNamespace(host=name, nodename=node or name)


def request(**fields):
    return objects.RequestSpec(instance_uuid=SERVER, **fields)


class Filter(unittest.TestCase):
    def filter(self, url, **values):
        options.settings()
        conf = cfg.CONF
        values = dict(
            {"urls": [url], "token": "rf_secret", "cloud": "east", "timeout_s": 0.5}, **values
        )
        for name, value in values.items():
            conf.set_override(name, value, group=options.GROUP)
            self.addCleanup(conf.clear_override, name, group=options.GROUP)
        made = RingfenceFilter()
        self.addCleanup(made._hook.close)
        return made

    def passing(self, made, states, spec=None, index=0):
        handler = filters.HostFilterHandler()
        got = handler.get_filtered_objects([made], states, spec or request(), index)
        return [(state.host, state.nodename) for state in got or []]

    def test_one_question_is_asked_for_all_hosts(self):
        with server.HookServer(server.only("c1", "c3")) as peer:
            got = self.passing(self.filter(peer.url), [host("c3"), host("c1"), host("c2")])
        self.assertEqual(got, [("c3", "c3"), ("c1", "c1")])
        self.assertEqual(
            peer.questions, [("/nova/filter", {"cloud": "east", "hosts": ["c1", "c2", "c3"]})]
        )
        self.assertEqual(peer.headers_seen[0]["X-Auth-Token"], "rf_secret")

    def test_all_nodes_of_a_host_are_asked_about_once(self):
        with server.HookServer(server.only("c1")) as peer:
            states = [host("c1", "n1"), host("c1", "n2"), host("c2", "n3")]
            got = self.passing(self.filter(peer.url), states)
        self.assertEqual(got, [("c1", "n1"), ("c1", "n2")])
        self.assertEqual(peer.questions[0][1]["hosts"], ["c1", "c2"])

    def test_later_servers_of_a_request_need_no_further_question(self):
        with server.HookServer(server.only("c1")) as peer:
            made = self.filter(peer.url)
            self.passing(made, [host("c1"), host("c2")])
            self.assertEqual(self.passing(made, [host("c1")], index=1), [("c1", "c1")])
        self.assertEqual(len(peer.questions), 1)

    def test_a_rebuild_is_filtered_too(self):
        rebuild = request(scheduler_hints={"_nova_check_type": ["rebuild"]})
        with server.HookServer(server.only()) as peer:
            self.assertEqual(self.passing(self.filter(peer.url), [host("c1")], rebuild), [])

    def test_a_host_that_the_answer_does_not_mention_is_refused(self):
        with server.HookServer(server.answer({"allowed": ["c1", "other"]})) as peer:
            got = self.passing(self.filter(peer.url), [host("c1"), host("c2")])
        self.assertEqual(got, [("c1", "c1")])

    def test_an_empty_list_of_hosts_needs_no_question(self):
        with server.HookServer(server.only()) as peer:
            self.assertEqual(list(self.filter(peer.url).filter_all([], request())), [])
        self.assertEqual(peer.questions, [])

    def test_a_single_host_can_be_asked_about(self):
        with server.HookServer(server.only("c1")) as peer:
            made = self.filter(peer.url)
            self.assertTrue(made.host_passes(host("c1"), request()))
            self.assertFalse(made.host_passes(host("c2"), request()))

    def test_a_request_without_a_server_is_filtered_too(self):
        with server.HookServer(server.only("c1")) as peer:
            got = self.passing(self.filter(peer.url), [host("c1")], objects.RequestSpec())
        self.assertEqual(got, [("c1", "c1")])

    def test_refused_hosts_are_logged_in_one_line(self):
        with server.HookServer(server.only("c1")) as peer:
            with self.assertLogs("ringfence_nova.filter", logging.INFO) as logs:
                self.passing(self.filter(peer.url), [host("c%d" % n) for n in range(1, 15)])
        self.assertEqual(len(logs.output), 1)
        self.assertIn("13 of 14 hosts for server %s" % SERVER, logs.output[0])
        self.assertIn("c10 (fenced)", logs.output[0])
        self.assertIn("and 3 more", logs.output[0])

    def test_an_answer_with_invalid_reasons_still_counts(self):
        for refused in (
            None,
            "c2",
            [1],
            [{"host": 2}],
            [{"host": "c2"}],
            [{"host": "c2", "reason": "a\nb"}],
        ):
            said = {"allowed": ["c1"], "refused": refused}
            with self.subTest(refused=refused), server.HookServer(server.answer(said)) as peer:
                with self.assertLogs("ringfence_nova.filter", logging.INFO) as logs:
                    got = self.passing(self.filter(peer.url), [host("c1"), host("c2")])
                self.assertEqual(got, [("c1", "c1")])
                self.assertNotIn("\n", logs.output[0])

    def test_without_an_answer_no_host_passes(self):
        broken = [
            server.answer({"allowed": ["c1"]}, status=500),
            server.answer({}),
            server.answer({"allowed": "c1"}),
            server.answer({"allowed": [1]}),
            server.answer({"allowed": True}),
            server.raw(b"c1"),
            server.silence(2),
        ]
        for number, behave in enumerate(broken):
            with self.subTest(number=number), server.HookServer(behave) as peer:
                with self.assertLogs("ringfence_nova.filter", logging.ERROR) as logs:
                    self.assertEqual(self.passing(self.filter(peer.url), [host("c1")]), [])
                self.assertEqual(len(logs.output), 1)
                self.assertNotIn("rf_secret", logs.output[0])

    def test_without_an_answer_all_hosts_pass_if_the_filter_is_open(self):
        for values in ({"filter_on_error": "open"}, {"on_error": "open"}):
            with self.subTest(values=values):
                made = self.filter(server.unreachable_address(), **values)
                with self.assertLogs("ringfence_nova.filter", logging.WARNING):
                    self.assertEqual(self.passing(made, [host("c1")]), [("c1", "c1")])

    def test_a_filter_that_is_not_configured_does_not_start(self):
        with self.assertRaises(ValueError):
            self.filter("", urls=[])
