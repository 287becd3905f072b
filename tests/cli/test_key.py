# SPDX-License-Identifier: MIT
"""laconic key: files that nobody else can read, and that are never replaced."""
import base64
import json
import os
import pathlib
import re
import stat
import unittest

from command import Command, FAILED, GOOD, USAGE


class Key(Command):
    def setUp(self):
        super().setUp()
        self.home = os.path.join(self.folder, "home")
        os.mkdir(self.home)
        self.environment = {**os.environ, "HOME": self.home}
        self.environment.pop("XDG_CONFIG_HOME", None)

    def key(self, *words, **more):
        return self.run_laconic("key", *words, **{"env": self.environment,
                                                  **more})

    def made(self, *words):
        """Only what is to be copied is on stdout, in one line."""
        done = self.key(*words)
        self.assertEqual(done.returncode, GOOD, done.stderr)
        if "--json" not in words:
            self.assertRegex(done.stdout, r"^[^\n]+\n$")
        self.explained = done.stderr
        return done.stdout

    def refused(self, message, *words, code=FAILED):
        done = self.key(*words)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, "^laconic: " + message)
        self.assertEqual(done.returncode, code)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def mode(self, *parts):
        return stat.S_IMODE(os.stat(self.path(*parts)).st_mode)

    def test_a_key_is_made_once_and_shown_after(self):
        first = self.made()
        public = first.split()[-1]
        self.assertEqual(len(base64.b64decode(public, validate=True)), 32)
        self.assertRegex(self.explained, "^the new key is .*/laconic/key\n")
        name = ("home", ".config", "laconic", "key")
        self.assertEqual(self.mode(*name), 0o600)
        self.assertEqual(self.mode(*name[:-1]), 0o700)
        before = self.read(os.path.join(*name))
        self.assertNotIn(public.encode(), before)
        private = before.decode().splitlines()[1]
        self.assertNotIn(private, first)
        for words in ((), ("--show",), ("--file", self.path(*name))):
            shown = self.made(*words)
            self.assertEqual(shown, first)
            self.assertRegex(self.explained, "^the key is .*/laconic/key\n")
            self.assertNotIn(private, shown + self.explained)
        self.assertEqual(self.read(os.path.join(*name)), before)
        self.assertEqual(os.listdir(self.path(*name[:-1])), ["key"])

    def test_the_line_is_one_of_a_peers_file(self):
        name, address, public = self.made().split()
        self.write("peers", ("%s 127.0.0.1:1 %s\n" % (name, public)).encode())
        self.assertRegex(address, r"^%s:\d+$" % name)
        done = self.run_laconic("peers", "check", "peers", "--timeout", "0.1",
                                env=self.environment)
        self.assertNotIn("expected the 44 characters", done.stderr)

    def test_the_documents_call_the_peers_file_the_same(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        for page in "README.md", "docs/internet.md":
            named = re.findall(r"(?:tcp:peers=|peers check |key >> )([\w.]+)",
                               (root / page).read_text(encoding="utf-8"))
            self.assertEqual(set(named), {"peers.txt"}, page)

    def test_the_folder_of_the_configuration_may_be_named(self):
        self.environment["XDG_CONFIG_HOME"] = self.path("config")
        self.made()
        self.assertEqual(self.mode("config", "laconic", "key"), 0o600)
        self.assertEqual(os.listdir(self.home), [])

    def test_keys_differ_and_json_has_the_public_one(self):
        one = json.loads(self.made("--file", "a/b/one", "--json"))
        again = json.loads(self.made("--file", "a/b/one", "--json"))
        two = json.loads(self.made("--file", "two", "--json"))
        self.assertEqual(self.explained, "")
        self.assertEqual(one, {"file": "a/b/one", "created": True,
                               "key": one["key"]})
        self.assertEqual(again, {**one, "created": False})
        self.assertNotEqual(one["key"], two["key"])
        self.assertEqual(self.mode("a", "b", "one"), 0o600)

    def test_show_makes_no_key(self):
        self.refused("key none does not exist; `laconic key` makes one",
                     "--show", "--file", "none")
        self.assertFalse(os.path.exists(self.path("none")))

    def test_a_key_that_others_can_read_is_refused(self):
        self.made("--file", "open")
        for mode in (0o640, 0o604, 0o620):
            os.chmod(self.path("open"), mode)
            self.refused("key open has mode %04o: others can use it, expected "
                         "0600" % mode, "--file", "open")
            self.assertEqual(self.mode("open"), mode)

    def test_a_file_that_is_no_key_is_refused_and_stays(self):
        self.made("--file", "good")
        for data in (b"", b"no key", self.read("good")[:60], bytes(5000)):
            self.write("bad", data)
            os.chmod(self.path("bad"), 0o600)
            self.refused("key bad ", "--file", "bad")
            self.assertEqual(self.read("bad"), data)

    def test_a_folder_that_cannot_be_written_is_named(self):
        self.write("file", b"")
        self.refused("key file/key: Not a directory", "--file", "file/key")
        self.refused("key /proc/none/key: ", "--file", "/proc/none/key")
        self.refused("the folder of the key is unknown: HOME is not set",
                     **self.without_home())

    def without_home(self):
        self.environment.pop("HOME")
        return {}

    def test_a_token_has_32_bytes_and_is_never_replaced(self):
        self.assertEqual(self.made("--token", "deep/token"),
                         "--transport tcp:token=deep/token\n")
        self.assertRegex(self.explained, "^the new token is deep/token\n")
        token = self.read("deep/token")
        self.assertEqual((len(token), self.mode("deep", "token")),
                         (32, 0o600))
        self.refused("token deep/token exists, and is never overwritten",
                     "--token", "deep/token")
        self.assertEqual(self.read("deep/token"), token)
        self.made("--token", "other")
        self.assertNotEqual(self.read("other"), token)
        self.assertEqual(os.listdir(self.home), [])

    def test_a_token_goes_with_no_key(self):
        self.refused("key: --token and --file were given, expected one",
                     "--token", "a", "--file", "b", code=USAGE)
        self.refused("key: --token and --show were given, expected one",
                     "--token", "a", "--show", code=USAGE)

    def test_a_full_disk_leaves_nothing(self):
        done = self.key("--file", "new", preexec_fn=self.no_room)
        self.assertEqual(done.returncode, FAILED)
        self.assertRegex(done.stderr, "^laconic: key new: ")
        self.assertEqual([n for n in os.listdir(self.folder) if "new" in n],
                         [])

    @staticmethod
    def no_room():
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


if __name__ == "__main__":
    unittest.main()
