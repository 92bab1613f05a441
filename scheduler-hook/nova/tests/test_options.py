"""The settings of the filter and the gate in nova.conf."""

import os
import tempfile
import unittest

from ringfence_nova.hook import HookUnavailable
from tests import hook_server as server

try:
    from oslo_config import cfg

    from ringfence_nova import options
except ImportError as error:
    raise unittest.SkipTest("oslo.config is not installed: %s" % error)


def section(**values):
    conf = cfg.ConfigOpts()
    conf([], project="ringfence-nova-test", default_config_files=[])
    got = options.settings(conf)
    for name, value in values.items():
        conf.set_override(name, value, group=options.GROUP)
    return got


def section_from(text):
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(text)
        file.flush()
        conf = cfg.ConfigOpts()
        conf(["--config-file", file.name], project="ringfence-nova-test")
        got = options.settings(conf)
        return {option.name: got[option.name] for option in options.OPTIONS}


class Options(unittest.TestCase):
    def test_a_file_in_the_form_of_the_guide_is_read(self):
        got = section_from(
            "[ringfence]\nurls = https://one:8791, https://two:8791\ncloud = east\n"
            "token_file = /etc/nova/ringfence.token\ntimeout_s = 1.5\non_error = closed\n"
        )
        self.assertEqual(got["urls"], ["https://one:8791", "https://two:8791"])
        self.assertEqual((got["cloud"], got["timeout_s"]), ("east", 1.5))

    def test_gate_and_filter_are_closed_by_default(self):
        got = section()
        self.assertFalse(options.gate_is_open_on_error(got))
        self.assertFalse(options.filter_is_open_on_error(got))

    def test_the_filter_can_be_open_while_the_gate_is_closed(self):
        got = section(filter_on_error="open")
        self.assertFalse(options.gate_is_open_on_error(got))
        self.assertTrue(options.filter_is_open_on_error(got))

    def test_on_error_is_for_both_unless_the_filter_has_its_own(self):
        self.assertTrue(options.filter_is_open_on_error(section(on_error="open")))
        got = section(on_error="open", filter_on_error="closed")
        self.assertFalse(options.filter_is_open_on_error(got))
        self.assertTrue(options.gate_is_open_on_error(got))

    def test_invalid_values_are_refused(self):
        for text in ("on_error = maybe", "timeout_s = 0", "timeout_s = 3600"):
            with self.subTest(text=text), self.assertRaises(cfg.ConfigFileValueError):
                section_from("[ringfence]\n%s\n" % text)

    def test_without_a_token_or_an_address_there_is_no_hook(self):
        for values in ({}, {"urls": ["http://x"]}, {"token": "t"}):
            with self.subTest(values=values), self.assertRaises(ValueError):
                options.hook_from(section(**values))

    def test_all_options_are_listed_for_sample_files(self):
        self.assertEqual(options.list_opts(), [("ringfence", options.OPTIONS)])


class Tokens(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = os.path.join(folder.name, "token")

    def ask(self, hook):
        self.addCleanup(hook.close)
        return hook.ask("/", {}, lambda answer: answer)

    def write(self, token):
        with open(self.file, "wb") as file:
            file.write(token)

    def test_a_new_token_in_the_file_is_used_at_once(self):
        with server.HookServer() as peer:
            hook = options.hook_from(section(urls=[peer.url], token_file=self.file))
            for token in (b"first\n", b"second"):
                self.write(token)
                self.ask(hook)
        tokens = [headers["X-Auth-Token"] for headers in peer.headers_seen]
        self.assertEqual(tokens, ["first", "second"])

    def test_the_file_goes_before_the_token_in_nova_conf(self):
        self.write(b"of-the-file")
        with server.HookServer() as peer:
            self.ask(options.hook_from(section(urls=[peer.url], token="t", token_file=self.file)))
        self.assertEqual(peer.headers_seen[0]["X-Auth-Token"], "of-the-file")

    def test_a_file_without_a_token_sends_no_question(self):
        with server.HookServer() as peer:
            hook = options.hook_from(section(urls=[peer.url], token_file=self.file))
            for content in (None, b"", b"\n", b"two\nlines", b"s\xc3\xa9cret", b"\xff", b"a\x00b"):
                if content is not None:
                    self.write(content)
                with self.subTest(content=content):
                    with self.assertRaises(HookUnavailable) as caught:
                        self.ask(hook)
                    self.assertNotIn("lines", str(caught.exception))
        self.assertEqual(peer.questions, [])
