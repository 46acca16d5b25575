"""Pickles that would run something, or take more memory than they hold, are refused, and nothing is run."""

from __future__ import annotations

import os
import pickle
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ernie_gram.formats.untrusted.reading import read_arrays
from reader.errors import InputError


def text(value: str) -> bytes:
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


class Reduced:
    """Pickles as a call of any function."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.reduced = (function, arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.reduced


def attacks(command: str) -> dict[str, bytes]:
    """Return pickles that run a shell command when they are loaded freely."""
    start, system, line = b"\x80\x02", b"cos\nsystem\n", text(command)
    getattr_system = (
        b"c__builtin__\ngetattr\nc__builtin__\n__import__\n" + text("os") + b"\x85R" + text("system") + b"\x86R"
    )
    codes = f"__import__('os').system({command!r})"
    return {
        "REDUCE": pickle.dumps({"a": Reduced(os.system, command)}, 4),
        "REDUCE of protocol 2": pickle.dumps({"a": Reduced(os.system, command)}, 2),
        "eval": pickle.dumps({"a": Reduced(eval, codes)}, 4),
        "exec": pickle.dumps([Reduced(exec, codes)], 4),
        "getattr": start + getattr_system + line + b"\x85R.",
        "INST": start + b"(" + line + b"ios\nsystem\n.",
        "OBJ": start + b"(" + system + line + b"o.",
        "NEWOBJ": start + b"csubprocess\nPopen\n" + line + b"\x85\x81.",
        "NEWOBJ_EX": b"\x80\x04" + b"csubprocess\nPopen\n" + line + b"\x85}" + text("shell") + b"\x88s\x92.",
        "STACK_GLOBAL": b"\x80\x04" + text("os") + text("system") + b"\x93" + line + b"\x85R.",
        "dotted name": b"\x80\x04" + text("numpy") + text("os.system") + b"\x93" + line + b"\x85R.",
        "BUILD of a class": start + b"cpickle\nUnpickler\n}" + text("find_class") + system + b"sb" + line + b"\x85R.",
        "BUILD of an array": start + b"cnumpy\nndarray\n)\x81}" + text("__setstate__") + system + b"sb" + line + b"b.",
        "encode of another codec": start + b"c_codecs\nencode\n" + line + text("rot13") + b"\x86Rcos\nsystem\nh\x00R.",
        "global in a persistent ID": start + b"(" + text("storage") + system + line + b"\x85RtQ.",
        "text persistent ID": start + b"Pos\n.",
        "extension registry": start + b"\x82\x01" + line + b"\x85R.",
        "after an array": start
        + b"}"
        + text("w")
        + pickle.dumps(np.ones(2), 2)[2:-1]
        + text("x")
        + system
        + line
        + b"\x85Ru.",
        "map": start + b"c__builtin__\nlist\nc__builtin__\nmap\n" + system + b"]" + line + b"a\x86R\x85R.",
        "memo": start + system + b"q\x000h\x00" + line + b"\x85R.",
    }


@pytest.mark.parametrize("name", ["model.pdparams", "pytorch_model.bin", "params"])
@pytest.mark.parametrize("case", attacks("true"))
def test_a_pickle_that_would_run_something_is_refused_and_nothing_is_run(tmp_path: Path, case: str, name: str) -> None:
    marker = tmp_path / "marker"
    path = tmp_path / name
    path.write_bytes(attacks(f"touch {marker}")[case])
    with pytest.raises(InputError) as caught:
        read_arrays(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    assert not marker.exists()


def test_the_attacks_are_real(tmp_path: Path) -> None:
    """The same bytes, loaded freely, write the marker. This proves that the test above can fail."""
    for case in ("REDUCE", "eval", "getattr", "INST", "OBJ", "STACK_GLOBAL", "memo"):
        marker = tmp_path / case
        pickle.loads(attacks(f"touch {marker}")[case])
        assert marker.exists(), case


ARRAY = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
FLOAT = b"cnumpy\ndtype\n" + text("f4") + b"\x89\x88\x87R"


def state(shape: bytes, data: bytes = b"C\x04abcd", kind: bytes = FLOAT) -> bytes:
    return b"\x80\x04}" + text("w") + ARRAY + b"(K\x01" + shape + kind + b"\x89" + data + b"tbs."


DAMAGED = {
    "shape of more than the bytes": (state(b"J\xff\xff\xff\x7f\x85"), "takes 8589934588 bytes"),
    "overflow": (state((b"\x8a\x08" + b"\x00" * 7 + b"\x40") * 2 + b"\x86"), "but 4 are stored"),
    "negative size": (state(b"J\xff\xff\xff\xff\x85"), "sizes of 0 and more"),
    "nested shape": (state(b"]" + b"\x85" * 5000 + b"\x85"), "sizes of 0 and more"),
    "object type": (state(b"K\x01\x85", kind=b"cnumpy\ndtype\n" + text("O8") + b"\x89\x88\x87R"), "type 'O8'"),
    "text type": (state(b"K\x01\x85", kind=b"cnumpy\ndtype\n" + text("U1") + b"\x89\x88\x87R"), "type 'U1'"),
    "big-endian type": (state(b"K\x01\x85", kind=FLOAT + b"(K\x03" + text(">") + b"NNNtb"), "cannot have"),
    "type with fields": (state(b"K\x01\x85", kind=FLOAT + b"(K\x03" + text("<") + b"N)}tb"), "cannot have"),
    "list of objects": (state(b"K\x01\x85", b"]Na"), "arrays of Python objects"),
    "no type": (state(b"K\x01\x85", kind=b"N"), "an array without a type"),
    "short state": (b"\x80\x04" + ARRAY + b"K\x01\x85b.", "type PickledArray cannot have"),
    "arguments of text": (b"\x80\x02cnumpy\ndtype\n" + text("f4") + b"R.", "not a tuple"),
    "call of a type": (b"\x80\x02cnumpy\nndarray\n)R.", "not callable"),
    "wrong number of arguments": (b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n)R.", "damaged: .* missing 3"),
    "other encoding": (b"\x80\x02c_codecs\nencode\n" + text("a") + text("utf-7") + b"\x86R.", "latin1"),
    "state of text": (b"\x80\x02" + text("a") + b"}b.", "type str"),
    "state of a global": (b"\x80\x02cnumpy\ndtype\n}" + text("__defaults__") + b"Nsb.", "type function"),
    "key of a tuple": (b"\x80\x02})Ns.", "a key has type tuple"),
    "list": (b"\x80\x02].", "holds a list"),
    "protocol of the future": (b"\x80\x09}.", "unsupported pickle protocol: 9"),
    "unknown operation": (b"\x80\x02\xff.", "operation .* not needed"),
    "set": (b"\x80\x04\x8f.", "operation .* not needed"),
    "outside buffer": (b"\x80\x05\x97.", "operation .* not needed"),
    "persistent ID": (b"\x80\x02" + text("0") + b"Q.", "does not have"),
}


@pytest.mark.parametrize(("data", "message"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_pickle_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "a.pdparams").write_bytes(data)
    with pytest.raises(InputError, match=message) as caught:
        read_arrays(tmp_path / "a.pdparams")
    assert "\n" not in str(caught.value)


def test_deep_nesting_is_harmless(tmp_path: Path) -> None:
    deep = b"]" + b"\x85" * 50_000
    good = pickle.dumps(np.ones(2, np.float32), 4)[2:-1]
    (tmp_path / "a.pdparams").write_bytes(b"\x80\x04}(" + text("deep") + deep + text("w") + good + b"u.")
    assert read_arrays(tmp_path / "a.pdparams").keys() == {"w"}


# Encode what is in the memo.
LATIN1 = b"c_codecs\nencode\nh\x00" + text("latin1") + b"\x86R"


@pytest.mark.parametrize(
    ("bomb", "message"),
    [
        (b"\x80\x02]r\xff\xff\xff\xff.", "holds a list"),  # a memo index for which pickle allocates 64 GB
        (b"\x80\x04\x8e" + struct.pack("<Q", 2**40) + b"abc.", "truncated"),  # a terabyte of bytes
        (b"\x80\x04\x8d" + struct.pack("<Q", 2**63) + b"abc.", "exceeds system's maximum size"),
        (b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b"abc.", "truncated"),
        (b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"].", "holds a list"),  # a frame larger than the file
        (
            b"\x80\x02](" + text("x" * 100_000) + b"q\x00" + LATIN1 * 1000 + b"e.",
            "holds a list",
        ),  # encoded again and again
        # Each of 40 tuples has the tuple before it 50 times: 50^40 elements, if they were counted or shown.
        (b"\x80\x02]q\x00" + (b"(" + b"h\x00" * 50 + b"tq\x00") * 40 + b".", "holds a tuple"),
    ],
)
def test_claims_of_sizes_take_no_memory(tmp_path: Path, bomb: bytes, message: str) -> None:
    (tmp_path / "a.pdparams").write_bytes(bomb)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=message):
            read_arrays(tmp_path / "a.pdparams")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_file_of_operations_only_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ernie_gram.formats.untrusted.pickles.MAX_OPERATIONS", 1000)
    (tmp_path / "a.pdparams").write_bytes(b"\x80\x02" + b"]" * 2000 + b".")
    with pytest.raises(InputError, match="more than 1,000 operations"):
        read_arrays(tmp_path / "a.pdparams")


def test_one_array_under_many_names_is_refused(tmp_path: Path) -> None:
    array = pickle.dumps(np.zeros(10_000, np.float32), 4)[2:-1]
    names = b"".join(text(f"name{number}") + b"h\x77" for number in range(100))
    (tmp_path / "a.pdparams").write_bytes(b"\x80\x04}(" + text("w") + array + b"q\x77" + names + b"u.")
    with pytest.raises(InputError, match="used repeatedly for arrays of 4,040,000 bytes"):
        read_arrays(tmp_path / "a.pdparams")
