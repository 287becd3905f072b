# SPDX-License-Identifier: MIT
"""laconic completion: the candidates, and what bash, zsh and fish make of them
when keys are typed. Shells that are not installed are skipped.

usage: test_completion.py LACONIC
"""
import os
import re
import shlex
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from command import Command, HANG, LACONIC, USAGE
from shell import FROM_FPATH, Shell, available

KINDS = {"algorithm": "algorithms", "compressor": "compressors",
         "topology": "topologies", "model": "models", "data": "datasets"}
# Keys, and the words that a shell makes of them.
TYPED = {
    "tra\t": "train",
    "help topo\t": "help topology",
    "train --alg\tcho\t": "train --algorithm choco",
    "train --algorithm=cho\t": "train --algorithm=choco",
    "train --algorithm choco:g\t0.5": "train --algorithm choco:gamma=0.5",
    "train --algorithm=choco:g\tau\t": "train --algorithm=choco:gamma=auto",
    "encode --compressor top-k:0.01+bf\t":
        "encode --compressor top-k:0.01+bfloat16",
    "train --opti\ta\t --sche\tcos\t":
        "train --optimizer adam --schedule cosine",
    "data f\twiki\t": "data fetch wikitext-2",
    "topology soc\t --workers 4": "topology social --workers 4",
    "launch -n 2 -- tra\t--ep\t3": "launch -n 2 -- train --epochs 3",
    "encode x\t": "encode x.npy",
    "encode run\tin\t": "encode runs/inner.npy",
    "train --out run\t": "train --out runs",
    "train --out=run\t": "train --out=runs",
    "train --out my\t --resume": "train --out 'my folder' --resume",
    "train --data no-such\t": "train --data no-such",
}


class Candidates(Command):
    def candidates(self, *words):
        """The candidates for the last word, with their descriptions."""
        lines = self.succeeds("completion", "--candidates", "--", *words)
        return dict(line.partition("\t")[::2] for line in lines.splitlines())

    def offers(self, expected, *words):
        self.assertEqual(list(self.candidates(*words)), expected, words)

    def test_the_first_word_is_a_command(self):
        shown = re.findall(r"(?m)^  ([a-z]+) +(.*)", self.succeeds("--help"))
        found = self.candidates("")
        for name, summary in shown:
            self.assertEqual(found.pop(name), summary)
        self.assertEqual(list(found),
                         ["help", "--help", "--version", "--no-pager"])
        self.offers([name for name, _ in shown], "help", "")
        self.offers(["train"], "tr")
        self.offers(["train"], "--no-pager", "tr")
        self.offers(["--no-pager"], "list", "--no")

    def test_every_option_of_the_help_is_offered(self):
        for command in self.candidates("help", ""):
            usage = self.succeeds(command, "--help").partition("\n\n")[0]
            shown = re.findall(r"[\[ ](--[a-z-]+)", usage) + ["--help"]
            self.offers([o for o in shown if o != "--"], command, "--")

    def test_an_option_is_offered_once(self):
        found = self.candidates("train", "--resume", "--out=x", "--seed", "1",
                                "--")
        self.assertFalse({"--resume", "--out", "--seed"} & set(found))
        self.assertIn("--seeds", found)
        self.assertNotIn("--agent", self.candidates("launch", "--"))

    def test_names_are_those_of_list(self):
        for option, kind in KINDS.items():
            names = self.listed(kind)
            self.offers(names, "train", "--" + option, "")
            self.offers(["--%s=%s" % (option, name) for name in names],
                        "train", "--%s=" % option)
        self.offers(["auto"] + self.listed("transports"), "average",
                    "--transport", "")
        self.offers(self.listed("topologies"), "topology", "")
        self.offers(["compressors", "compressed"], "list", "sign", "compr")
        self.offers(self.listed("datasets"), "data", "fetch", "")
        self.offers(self.listed("compressors") + self.listed("algorithms"),
                    "bench", "natural", "")

    def test_settings_of_specs(self):
        self.offers(["choco:gamma=", "choco:trigger="], "train",
                    "--algorithm", "choco:")
        self.offers(["choco:gamma=auto"], "train", "--algorithm",
                    "choco:gamma=a")
        self.offers(["dithering:levels=3,norm="], "encode", "--compressor",
                    "dithering:levels=3,n")
        self.offers(["qsgd:norm=2"], "encode", "--compressor", "qsgd:norm=2")
        self.offers(["top-k:0.01+sign"], "encode", "--compressor",
                    "top-k:0.01+sig")
        self.offers(["low-rank:fold=yes", "low-rank:fold=no"], "encode",
                    "--compressor", "low-rank:fold=")
        self.offers([], "train", "--algorithm", "nothing:")

    def test_choices(self):
        self.offers(["sgd", "adam"], "train", "--optimizer", "")
        self.offers(["--network=star", "--network=shared"], "plan",
                    "--network=s")
        self.offers(["default", "auto"], "train", "--lr", "")
        self.offers(["dirichlet:"], "train", "--split", "d")
        self.offers(["inverse:"], "train", "--schedule", "i")
        self.offers(["list", "fetch"], "data", "")
        self.offers(["bash", "zsh", "fish"], "completion", "")
        self.offers(["train", "topology"], "manual", "t")
        self.offers([], "train", "--epochs", "")

    def test_paths(self):
        for words in (["train", "--out", ""], ["train", "--data-dir=x"],
                      ["compare", "--baseline", ""], ["plan", "--run", ""]):
            self.offers([":folders"], *words)
        for words in (["encode", "x"], ["encode", "x.npy", ""],
                      ["train", "--config", ""], ["plan", "--svg="],
                      ["topology", "ring", "--matrix", ""],
                      ["bench", "natural", "--compare", ""],
                      ["peers", "check", ""], ["report", "a", "b", ""],
                      ["encode", "--", "--x"]):
            self.offers([":files"], *words)
        self.offers([], "encode", "x.npy", "x.lac", "")
        self.offers([], "launch", "--hosts", "")

    def test_the_command_of_launch(self):
        self.assertIn(":files", self.candidates("launch", ""))
        self.assertIn("train", self.candidates("launch", "-n", "4", "--", ""))
        self.offers(["--epochs"], "launch", "-n", "4", "train", "--ep")
        self.offers(["choco"], "launch", "--", "launch", "--", "train",
                    "--algorithm", "cho")
        self.offers([":files"], "launch", "-n", "4", "--", "./program", "x")
        self.offers(["--hosts"], "launch", "-n", "4", "--ho")

    def test_odd_words_have_no_candidates(self):
        for words in (["nothing", ""], ["", ""], ["train", "x" * 100000],
                      ["train", "--" + "y" * 1000 + "="], ["-", "-"],
                      ["train", "--algorithm", ":::,,,==+++"],
                      ["encode", "--compressor", "+" * 1000 + "\n\t\\"],
                      ["help", "train", ""]):
            self.offers([], *words)

    def test_wrong_words(self):
        self.fails(USAGE, 'completion: "tcsh" was given, expected bash, zsh '
                   "or fish", "completion", "tcsh")
        self.fails(USAGE, 'completion: "zsh" was given, expected bash, zsh '
                   "or fish", "completion", "bash", "zsh")
        self.fails(USAGE, "completion: 0 arguments are given, expected "
                   "bash|zsh|fish | -- WORD...", "completion")


class Shells(Command):
    def setUp(self):
        super().setUp()
        os.mkdir(os.path.join(self.folder, "runs"))
        os.mkdir(os.path.join(self.folder, "my folder"))
        self.write("runs/inner.npy", b"")

    def script(self, name):
        if not available(name):
            self.skipTest(name + " is not installed")
        self.write("script", self.succeeds("completion", name).encode())
        return os.path.join(self.folder, "script")

    def output(self, *words):
        done = subprocess.run(
            words, cwd=self.folder, text=True, timeout=HANG, check=False,
            stdout=subprocess.PIPE, env={**os.environ, "HOME": self.folder})
        self.assertEqual(done.returncode, 0)
        return done.stdout.splitlines()

    def typed(self, name, load=None):
        """Types every line, and compares the command lines that result."""
        self.assertEqual(self.output(name, "-n", self.script(name)), [])
        shell = Shell(name, self.folder, load)
        self.addCleanup(shell.close)
        for keys, line in TYPED.items():
            with self.subTest(keys):
                found = shell.words(keys)
                self.assertEqual([word.rstrip("/") for word in found],
                                 shlex.split(line))

    def test_keys_in_bash(self):
        self.typed("bash")

    def test_keys_in_zsh(self):
        self.typed("zsh")

    def test_keys_in_zsh_with_an_installed_script(self):
        self.typed("zsh", FROM_FPATH)

    def test_keys_in_fish(self):
        self.typed("fish")

    def test_all_candidates_in_bash(self):
        script = self.script("bash")
        for line, expected in ((["train", "--test"], "--test-every "
                                "--test-limit"),
                               (["size", "--model", "resnet"],
                                "resnet8 resnet20 resnet18 resnet50")):
            words = [LACONIC] + line
            found = self.output(
                "bash", "--norc", "-c", 'source "$1"; shift; '
                'COMP_WORDS=("$@") COMP_CWORD=$(($#-1)) COMP_LINE="$*"; '
                "COMP_POINT=${#COMP_LINE}; _laconic 2>/dev/null; "
                'echo "${COMPREPLY[*]}"',
                "bash", script, *words)
            self.assertEqual(found, [expected])

    def test_all_candidates_in_fish(self):
        script = self.script("fish")
        found = self.output(
            "fish", "--no-config", "-c",
            "source %s; complete -C '%s train --test'" % (script, LACONIC))
        self.assertEqual([line.split("\t")[0] for line in found],
                         ["--test-every", "--test-limit"])


if __name__ == "__main__":
    unittest.main()
