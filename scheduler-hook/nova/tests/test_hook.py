"""A question to the hook gets an answer or an error in time, whatever the other side does."""

import os
import subprocess
import tempfile
import threading
import time
import unittest

from ringfence_nova.hook import Hook, HookUnavailable
from tests import hook_server as server

YES = {"allowed": True}


_HOOKS = []


def hook(*urls, timeout_s=0.5, token="rf_secret", **more):
    _HOOKS.append(Hook(urls, lambda: token, timeout_s=timeout_s, **more))
    return _HOOKS[-1]


def tearDownModule():
    for each in _HOOKS:
        each.close()


def ask(asked):
    return asked.ask("/nova/evacuate-check", {"host": "c1"}, lambda answer: answer)


class Answers(unittest.TestCase):
    def test_a_question_has_the_token_and_gets_its_answer(self):
        with server.HookServer(server.answer(YES)) as peer:
            self.assertEqual(ask(hook(peer.url)), YES)
        self.assertEqual(peer.questions, [("/nova/evacuate-check", {"host": "c1"})])
        self.assertEqual(peer.headers_seen[0]["X-Auth-Token"], "rf_secret")
        self.assertEqual(peer.headers_seen[0]["Content-Type"], "application/json")

    def test_a_prefix_in_the_address_is_kept(self):
        with server.HookServer(server.answer(YES)) as peer:
            ask(hook(peer.url + "/gate/"))
        self.assertEqual(peer.questions[0][0], "/gate/nova/evacuate-check")

    def test_sequential_questions_share_a_connection(self):
        with server.HookServer(server.answer(YES)) as peer:
            asked = hook(peer.url)
            for _ in range(20):
                ask(asked)
        self.assertEqual((len(peer.questions), peer.connections), (20, 1))

    def test_concurrent_questions_have_separate_connections(self):
        def slowly(handler, question):
            time.sleep(0.1)
            server.answer(YES)(handler, question)

        with server.HookServer(slowly) as peer:
            asked = hook(peer.url, timeout_s=5)
            answers = []
            threads = [
                threading.Thread(target=lambda: answers.append(ask(asked))) for _ in range(30)
            ]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
        self.assertEqual(answers, [YES] * 30)

    def test_a_server_that_closes_after_each_answer_is_read_to_the_end(self):
        with server.HookServer(server.answer(YES, Connection="close")) as peer:
            asked = hook(peer.url)
            self.assertEqual([ask(asked), ask(asked)], [YES, YES])
        self.assertEqual(peer.connections, 2)

    def test_an_idle_connection_that_was_closed_is_opened_again(self):
        def once_and_gone(handler, question):
            server.answer(YES)(handler, question)
            handler.close_connection = True

        with server.HookServer(once_and_gone) as peer:
            asked = hook(peer.url)
            self.assertEqual(ask(asked), YES)
            time.sleep(0.1)
            self.assertEqual(ask(asked), YES)

    def test_an_answer_in_chunks_is_read(self):
        def chunked(handler, question):
            handler.send_response(200)
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            handler.wfile.write(b'5\r\n{"all\r\nc\r\nowed": true}\r\n0\r\n\r\n')

        with server.HookServer(chunked) as peer:
            asked = hook(peer.url)
            self.assertEqual([ask(asked), ask(asked)], [YES, YES])
        self.assertEqual(peer.connections, 1)


class Failures(unittest.TestCase):
    def unavailable(self, asked):
        with self.assertRaises(HookUnavailable) as caught:
            ask(asked)
        return str(caught.exception)

    def error_of(self, behave, **more):
        with server.HookServer(behave) as peer:
            return self.unavailable(hook(peer.url, **more))

    def test_a_refused_connection_is_no_answer(self):
        self.assertIn("refused", self.unavailable(hook(server.unreachable_address())).lower())

    def test_a_silent_peer_costs_only_the_timeout(self):
        started = time.monotonic()
        self.assertIn("time", self.error_of(server.silence(3), timeout_s=0.3))
        self.assertLess(time.monotonic() - started, 2)

    def test_a_slow_answer_does_not_prolong_the_timeout(self):
        started = time.monotonic()
        self.assertIn("time", self.error_of(server.drip(b" " * 100, 0.1), timeout_s=0.5))
        self.assertLess(time.monotonic() - started, 3)

    def test_an_error_status_is_no_answer(self):
        for status in (201, 204, 301, 400, 401, 403, 404, 500, 503):
            with self.subTest(status=status):
                told = self.error_of(server.answer(YES if status != 204 else "", status=status))
                self.assertIn("it answered %d" % status, told)

    def test_an_invalid_body_is_no_answer(self):
        for text in (b"", b"<html>", b"{", b"[true]", b"null", b"true", b"\xff\xfe", b"[" * 100000):
            with self.subTest(text=text[:10]):
                self.error_of(server.raw(text))

    def test_an_endless_body_is_no_answer(self):
        told = self.error_of(server.raw(b" " * (5 * 1024 * 1024)), timeout_s=5)
        self.assertIn("longer than", told)

    def test_a_closed_connection_is_no_answer(self):
        self.error_of(server.hang_up)

    def test_an_answer_that_is_not_http_is_reported_in_one_line(self):
        def other(handler, question):
            handler.wfile.write(b"SSH-2.0-x\r\n")
            handler.close_connection = True

        self.assertNotIn("\n", self.error_of(other))

    def test_an_answer_that_is_not_understood_is_no_answer(self):
        def not_understood(answer):
            raise ValueError("what is this")

        with server.HookServer(server.answer(YES)) as peer:
            with self.assertRaisesRegex(HookUnavailable, "what is this"):
                hook(peer.url).ask("/", {}, not_understood)

    def test_a_token_that_cannot_be_read_sends_no_question(self):
        def token():
            raise ValueError("it is empty")

        with server.HookServer(server.answer(YES)) as peer:
            with self.assertRaisesRegex(HookUnavailable, "token cannot be read"):
                ask(Hook([peer.url], token))
        self.assertEqual(peer.questions, [])

    def test_the_token_is_in_no_error(self):
        for behave in (server.raw(b"x"), server.hang_up, server.answer(YES, status=401)):
            self.assertNotIn("rf_secret", self.error_of(behave))


class SeveralAddresses(unittest.TestCase):
    def test_the_next_address_is_asked_if_one_does_not_answer(self):
        with server.HookServer(server.answer(YES)) as good:
            with server.HookServer(server.answer({}, status=500)) as broken:
                asked = hook(server.unreachable_address(), broken.url, good.url)
                self.assertEqual(ask(asked), YES)
        self.assertEqual((len(broken.questions), len(good.questions)), (1, 1))

    def test_the_address_that_answered_last_is_asked_first(self):
        with server.HookServer(server.silence(3)) as silent:
            with server.HookServer(server.answer(YES)) as good:
                asked = hook(silent.url, good.url, timeout_s=0.3)
                [ask(asked) for _ in range(3)]
        self.assertEqual((len(silent.questions), len(good.questions)), (1, 3))

    def test_the_first_address_is_asked_again_if_the_second_fails(self):
        with server.HookServer(server.answer(YES, status=500)) as first:
            with server.HookServer(server.answer(YES)) as second:
                asked = hook(first.url, second.url)
                ask(asked)
                first.behave, second.behave = second.behave, first.behave
                self.assertEqual(ask(asked), YES)

    def test_the_errors_of_all_addresses_are_reported(self):
        first, second = server.unreachable_address(), server.unreachable_address()
        with self.assertRaises(HookUnavailable) as caught:
            ask(hook(first, second))
        for url in (first, second):
            self.assertIn(url.split("//")[1], str(caught.exception))


class Configured(unittest.TestCase):
    def test_invalid_addresses_are_refused_at_once(self):
        for url in (
            "",
            "ringfence:8791",
            "ftp://x",
            "http://",
            "http://user:secret@x",
            "http://x/?a",
        ):
            with self.subTest(url=url):
                with self.assertRaises(ValueError) as caught:
                    hook(url)
                self.assertNotIn("secret", str(caught.exception))

    def test_an_empty_list_of_addresses_is_refused(self):
        with self.assertRaises(ValueError):
            Hook([], lambda: "t")


class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.certificate = os.path.join(cls.folder.name, "cert.pem")
        key = os.path.join(cls.folder.name, "key.pem")
        subprocess.run(
            "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=hook "
            "-addext subjectAltName=IP:127.0.0.1 -keyout".split() + [key, "-out", cls.certificate],
            check=True,
            capture_output=True,
        )
        cls.tls = (cls.certificate, key)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_a_certificate_of_the_configured_authority_is_trusted(self):
        with server.HookServer(server.answer(YES), tls=self.tls) as peer:
            asked = hook(peer.url, timeout_s=5, ca_file=self.certificate)
            self.assertEqual([ask(asked), ask(asked)], [YES, YES])
        self.assertEqual(peer.connections, 1)

    def test_a_certificate_of_another_authority_is_refused(self):
        with server.HookServer(server.answer(YES), tls=self.tls) as peer:
            with self.assertRaisesRegex(HookUnavailable, "(?i)certificate"):
                ask(hook(peer.url, timeout_s=5))
        self.assertEqual(peer.questions, [])

    def test_a_silent_handshake_ends_in_time(self):
        with server.socket.socket() as mute:
            mute.bind(("127.0.0.1", 0))
            mute.listen()
            url = "https://127.0.0.1:%d" % mute.getsockname()[1]
            with self.assertRaises(HookUnavailable):
                ask(hook(url, timeout_s=0.3, ca_file=self.certificate))


if __name__ == "__main__":
    unittest.main()
