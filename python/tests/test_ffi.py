# SPDX-License-Identifier: MIT
"""The bindings against the headers of the library, and how it is found."""
import ctypes
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys

import pytest

import laconic
from laconic import _ffi, _library

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include"

STRUCTS = {
    "Shape": "lac_shape", "Tensor": "lac_tensor", "Scope": "lac_scope",
    "Key": "lac_key", "Guarantee": "lac_guarantee", "Edge": "lac_edge",
    "Spectrum": "lac_spectrum", "Send": "lac_send", "Receive": "lac_receive",
    "TransportOps": "lac_transport_ops", "TcpPeer": "lac_tcp_peer",
    "Slice": "lac_slice", "AlgorithmOptions": "lac_algorithm_options",
    "Traffic": "lac_traffic", "Cost": "lac_cost", "Param": "lac_param",
    "Plugin": "lac_plugin", "Alias": "lac_alias",
}

CONSTANTS = {
    "F32": "LAC_F32", "F16": "LAC_F16", "BF16": "LAC_BF16", "F64": "LAC_F64",
    "FAMILY_GRADIENT": "LAC_FAMILY_GRADIENT",
    "FORM_CONTRACTIVE": "LAC_FORM_CONTRACTIVE",
    "SCOPE_SHARED": "LAC_SCOPE_SHARED",
    "PURPOSE_COMPRESS": "LAC_PURPOSE_COMPRESS",
    "TRAIT_LINEAR": "LAC_TRAIT_LINEAR",
    "TRAIT_DETERMINISTIC": "LAC_TRAIT_DETERMINISTIC",
    "TRAIT_ELEMENTWISE": "LAC_TRAIT_ELEMENTWISE",
    "TRAIT_FIXED_SIZE": "LAC_TRAIT_FIXED_SIZE",
    "NONFINITE_RAW": "LAC_NONFINITE_RAW",
    "NONFINITE_PROPAGATE": "LAC_NONFINITE_PROPAGATE",
    "LOAD_OTHER_WORLD": "LAC_LOAD_OTHER_WORLD",
    "RANK_ANY": "LAC_RANK_ANY",
}


def headers():
    return "".join(path.read_text()
                   for path in sorted((INCLUDE / "laconic").glob("*.h")))


def test_every_structure_of_the_bindings_is_checked():
    found = {name for name, value in vars(_ffi).items()
             if isinstance(value, type)
             and issubclass(value, ctypes.Structure)
             and value is not ctypes.Structure}
    assert found == set(STRUCTS)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_structures_and_constants_are_those_of_the_headers(tmp_path):
    lines = [f"#include <laconic/{path.name}>"
             for path in (INCLUDE / "laconic").glob("*.h")
             if path.name != "laconic.h"]
    for name, c_name in STRUCTS.items():
        struct = getattr(_ffi, name)
        lines.append(f"_Static_assert(sizeof({c_name}) == "
                     f"{ctypes.sizeof(struct)}, \"{name}\");")
        for member, kind in struct._fields_:
            place = getattr(struct, member)
            c_member = "in" if member == "inp" else member
            lines.append(
                f"_Static_assert(offsetof({c_name}, {c_member}) == "
                f"{place.offset} && sizeof((({c_name} *)0)->{c_member}) == "
                f"{place.size}, \"{name}.{member}\");")
    for name, c_name in CONSTANTS.items():
        lines.append(f"_Static_assert((long long){c_name} == "
                     f"{getattr(_ffi, name)}, \"{name}\");")
    for status, kind in _ffi.ERRORS.items():
        assert kind.status == status
    source = tmp_path / "check.c"
    source.write_text("\n".join(["#include <stddef.h>", *lines, ""]))
    done = subprocess.run(
        ["cc", "-std=c17", "-fsyntax-only", f"-I{INCLUDE}", str(source)],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def arguments_of(text, name):
    found = re.search(rf"\b{name}\(((?:[^()]|\([^()]*\))*)\)", text)
    assert found, f"{name} is not in the headers"
    inside = re.sub(r"\([^()]*\)", "", found.group(1)).strip()
    return 0 if inside == "void" else inside.count(",") + 1


def test_functions_have_the_arguments_of_the_headers():
    text = re.sub(r"//.*", "", headers())
    text += (INCLUDE / "laconic" / "version.h.in").read_text()
    for name, result, arguments in _ffi._PROTOTYPES:
        assert arguments_of(text, name) == len(arguments), name
        fallible = re.search(
            rf"LAC_FALLIBLE lac_status\s+{name}\(", text) is not None
        assert fallible == (result is _ffi._STATUS) or (
            name == "lac_fail_text"), name


def test_every_status_has_its_error():
    text = (INCLUDE / "laconic" / "status.h").read_text()
    listed = dict(re.findall(r"X\((LAC_ERR_\w+), (-\d+)", text))
    assert {int(value) for value in listed.values()} == set(_ffi.ERRORS)


def test_errors_are_also_pythons():
    for kind, also in (
            (laconic.InvalidError, ValueError),
            (laconic.NotFoundError, LookupError),
            (laconic.CorruptError, ValueError),
            (laconic.PeerError, ConnectionError),
            (laconic.UnsupportedError, NotImplementedError),
            (laconic.NoMemoryError, MemoryError),
            (laconic.SpaceError, laconic.Error)):
        error = pickle.loads(pickle.dumps(kind("what failed")))
        assert isinstance(error, also) and isinstance(error, RuntimeError)
        assert str(error) == "what failed" and error.status < 0


def test_the_version_is_the_librarys():
    project = (ROOT / "CMakeLists.txt").read_text()
    version = re.search(r"project\(laconic VERSION ([0-9.]+)", project)
    assert laconic.__version__ == version.group(1)


def test_a_function_that_the_library_lacks_is_named():
    _ffi.lib._prototypes["lac_of_tomorrow"] = (None, [])
    try:
        assert not _ffi.lib.has("lac_of_tomorrow")
        with pytest.raises(laconic.UnsupportedError, match="of_tomorrow"):
            _ffi.lib.lac_of_tomorrow()
    finally:
        del _ffi.lib._prototypes["lac_of_tomorrow"]


def test_a_library_that_cannot_be_loaded_is_named():
    environment = dict(os.environ, LACONIC_LIBRARY="/nowhere/liblaconic.so.0")
    done = subprocess.run([sys.executable, "-c", "import laconic"],
                          env=environment, capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: laconic: cannot load "
                           "/nowhere/liblaconic.so.0 (LACONIC_LIBRARY")


def test_the_variable_comes_first(monkeypatch):
    monkeypatch.setenv("LACONIC_LIBRARY", "some/lib.so")
    assert _library.find() == os.path.abspath("some/lib.so")
    monkeypatch.delenv("LACONIC_LIBRARY")
    bundled = pathlib.Path(_library.__file__).parent / "lib" / _library.NAME
    assert _library.find() == (
        str(bundled.resolve()) if bundled.exists() else _library.NAME)


def test_importing_laconic_does_not_import_torch():
    code = "import laconic, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
