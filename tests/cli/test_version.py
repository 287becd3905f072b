# SPDX-License-Identifier: MIT
"""laconic version: what a report of a defect needs, and why a module is
missing.

usage: test_version.py LACONIC
"""
import json
import os
import platform
import re
import sys
import unittest

sys.dont_write_bytecode = True
from command import Command, GOOD, LACONIC, USAGE

# How the libraries of the modules name themselves.
LIBRARIES = {
    "tcp": ("laconic_tcp.so", r"OpenSSL 3\.\d+\.\d+\b"),
    "openmpi": ("laconic_mpi_openmpi.so", r"Open MPI v\d+\.\d+\.\d+\w*$"),
    "mpich": ("laconic_mpi_mpich.so", r"MPICH \d+\.\d+(\.\d+\w*)?$"),
}


class Version(Command):
    def version(self, *words, **variables):
        done = self.run_laconic("version", *words,
                                env={**os.environ, **variables})
        self.assertEqual((done.returncode, done.stderr), (GOOD, ""))
        return done.stdout

    def found(self, **variables):
        return json.loads(self.version("--json", **variables))

    def modules(self, **variables):
        """The objects of all modules, by name."""
        found = self.found(**variables)
        for module in found["mpi"]:
            self.assertEqual(list(module), ["name", "version", "problem"])
        self.assertEqual(list(found["openssl"]), ["version", "problem"])
        return {"tcp": found["openssl"],
                **{module["name"]: module for module in found["mpi"]}}

    def rows(self, **variables):
        """The rows of the table, with lines that were wrapped joined."""
        text = self.version(**variables)
        for line in text.splitlines():
            self.assertLessEqual(len(line), 80, line)
            self.assertEqual(line, line.rstrip())
        rows = {}
        for name, value in re.findall(r"(?m)^(\w*) +(\S.*)$", text):
            if name:
                rows[name] = value
                last = name
            else:
                rows[last] += value if rows[last].endswith("/") else " " + value
        return rows

    def test_the_option_prints_one_line(self):
        line = "laconic %s\n" % self.found()["laconic"]
        self.assertEqual(self.succeeds("--version"), line)
        self.assertRegex(line, r"^laconic \d+\.\d+\.\d+\n$")

    def test_json_has_all_keys(self):
        found = self.found()
        self.assertEqual(list(found), [
            "laconic", "compiler", "build", "kernels", "prefetch", "processor",
            "processors", "onednn", "mpi", "openssl", "zlib", "cjson", "glibc",
            "system"])
        self.assertRegex(found["compiler"], r"^gcc \d+\.|[Cc]lang \d+\.")
        bench = json.loads(self.succeeds("bench", "identity", "--values", "10",
                                         "--runs", "1", "--json"))
        self.assertEqual(found["kernels"], bench["kernels"])
        self.assertGreater(found["processors"], 0)
        self.assertEqual(list(found["onednn"]),
                         ["version", "headers", "instructions"])
        for text in (found["onednn"]["version"], found["onednn"]["headers"],
                     found["zlib"], found["cjson"], found["glibc"]):
            self.assertRegex(text, r"^\d+\.\d+")
        self.assertIn(platform.release(), found["system"])
        self.assertIn(platform.machine(), found["system"])

    def test_the_table_has_what_json_has(self):
        found, rows = self.found(), self.rows()
        self.assertEqual(list(rows), [
            "laconic", "compiler", "processor", "kernels", "oneDNN", "tcp",
            "openmpi", "mpich", "others", "system"])
        self.assertEqual(rows["laconic"], found["laconic"])
        self.assertEqual(rows["compiler"],
                         "%(compiler)s, %(build)s" % found)
        self.assertEqual(rows["processor"],
                         "%(processor)s, %(processors)d usable" % found)
        self.assertEqual(rows["kernels"], found["kernels"] + (
            ", with prefetching" if found["prefetch"] else ""))
        self.assertEqual(
            rows["oneDNN"], "%(version)s for %(instructions)s, compiled with "
            "headers of %(headers)s" % found["onednn"])
        self.assertEqual(rows["others"], "glibc %(glibc)s, zlib %(zlib)s, "
                         "cJSON %(cjson)s" % found)
        self.assertEqual(rows["system"], found["system"])
        for name, module in self.modules().items():
            self.assertEqual(rows[name],
                             module["version"] or module["problem"])

    def test_every_mpi_of_the_transport_is_there(self):
        transports = json.loads(self.succeeds("list", "--json"))["transports"]
        mpi = next(t for t in transports if t["name"] == "mpi")
        library = next(p for p in mpi["params"] if p["name"] == "library")
        self.assertEqual(["auto"] + [m["name"] for m in self.found()["mpi"]],
                         library["choices"])

    def test_modules_name_their_libraries(self):
        found = self.modules()
        for name, (file, version) in LIBRARIES.items():
            if os.path.exists(os.path.join(os.path.dirname(LACONIC), file)):
                self.assertRegex(found[name]["version"], "^" + version)
                self.assertIsNone(found[name]["problem"])
            else:
                self.assertIsNone(found[name]["version"])
                self.assertIn("there is no " + file, found[name]["problem"])

    def test_a_module_that_is_missing_or_damaged_is_no_failure(self):
        self.write("laconic_tcp.so", b"")
        self.write("laconic_mpi_mpich.so", b"no library")
        folder = self.folder + "/"
        found = self.modules(LACONIC_MODULES=folder)
        self.assertEqual(found["openmpi"]["problem"], "mpi: there is no "
                         "laconic_mpi_openmpi.so in " + folder)
        for name in "tcp", "mpich":
            self.assertRegex(found[name]["problem"], "^%s: %s%s: " % (
                "tcp" if name == "tcp" else "mpi", folder, LIBRARIES[name][0]))
            self.assertIsNone(found[name]["version"])

    def test_long_paths_fit_into_the_table(self):
        folder = self.folder + "/" + "/".join(["folder" * 20] * 2)
        os.makedirs(folder)
        rows = self.rows(LACONIC_MODULES=folder)
        for name, (file, _) in LIBRARIES.items():
            self.assertIn("there is no " + file, rows[name])

    def test_a_limit_of_onednn_is_shown(self):
        if platform.machine() != "x86_64":
            self.skipTest("the limit is for x86-64")
        found = self.found(ONEDNN_MAX_CPU_ISA="SSE41")
        self.assertEqual(found["onednn"]["instructions"], "sse41")

    def test_arguments_are_refused(self):
        self.fails(USAGE, 'version: unexpected argument "now", expected only '
                   "options", "version", "now")


if __name__ == "__main__":
    unittest.main()
