"""The settings in the guide are accepted as they are written there."""

import configparser
import os
import re
import tempfile
import unittest

try:
    from oslo_config import cfg
    from paste import deploy

    from ringfence_nova import middleware, options
except ImportError as error:
    raise unittest.SkipTest("the libraries of Nova are not installed: %s" % error)

GUIDE = os.path.join(os.path.dirname(__file__), "..", "README.md")


def blocks():
    """Every ini block of the guide, by its first section."""
    with open(GUIDE, encoding="utf-8") as file:
        found = re.findall(r"```ini\n(.*?)```", file.read(), re.DOTALL)
    return {re.search(r"\[(.*?)\]", block).group(1): block for block in found}


class Guide(unittest.TestCase):
    def file(self, text, suffix):
        file = tempfile.NamedTemporaryFile("w", suffix=suffix)
        self.addCleanup(file.close)
        file.write(text)
        file.flush()
        return file.name

    def test_nova_conf_has_only_known_options(self):
        written = configparser.ConfigParser()
        written.read_string(blocks()["ringfence"])
        known = {option.name for option in options.OPTIONS}
        self.assertEqual(set(written["ringfence"]) - known, set())
        conf = cfg.ConfigOpts()
        conf(["--config-file", self.file(blocks()["ringfence"], ".conf")], project="guide")
        self.assertEqual(len(options.settings(conf).urls), 2)

    def test_every_option_is_in_the_guide(self):
        with open(GUIDE, encoding="utf-8") as file:
            guide = file.read()
        for option in options.OPTIONS:
            self.assertIn("| `%s` |" % option.name, guide)

    def test_paste_finds_the_gate(self):
        section = options.settings()
        for name, value in (("urls", ["http://127.0.0.1:1"]), ("token", "t")):
            cfg.CONF.set_override(name, value, group=options.GROUP)
            self.addCleanup(cfg.CONF.clear_override, name, group=options.GROUP)
        path = self.file(blocks()["filter:ringfence"], ".ini")
        made = deploy.loadfilter("config:" + path, "ringfence")(lambda *_: None)
        self.assertIsInstance(made, middleware.EvacuateGate)
        self.assertEqual(section.cloud, "default")

    def test_the_gate_is_behind_authentication_in_both_pipelines(self):
        paste = configparser.ConfigParser()
        paste.read_string(blocks()["composite:openstack_compute_api_v21"])
        self.assertEqual(len(paste.sections()), 2)
        for name in paste.sections():
            pipeline = paste[name]["keystone"].split()
            self.assertEqual(pipeline[pipeline.index("keystonecontext") + 1], "ringfence")
