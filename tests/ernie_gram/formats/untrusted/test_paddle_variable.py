"""Paddle's format of one variable per file, against Paddle's own reader and writer."""

from __future__ import annotations

import os
import resource
import struct
from pathlib import Path

import numpy as np
import paddle
import pytest

from ernie_gram.formats.untrusted.paddle_files import write_paddle_variable
from ernie_gram.formats.untrusted.reading import read_arrays
from reader.errors import InputError

pytestmark = pytest.mark.usefixtures("dynamic_mode")

VALUES = (
    np.arange(2 * 300).reshape(2, 300).T % 250 - 3
)  # exact in bfloat16; a size that takes two bytes; not contiguous
TYPES = ["float32", "float16", "float64", "int64", "int32", "int16", "bool"]


@pytest.mark.parametrize("kind", [*TYPES, "bfloat16"])
def test_variables_of_paddle_are_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "word_embedding"
    paddle.save(paddle.to_tensor(VALUES).astype(kind), str(path), use_binary_format=True)
    found = read_arrays(path)["word_embedding"]
    assert found.dtype == ("float32" if "float" in kind else kind)
    np.testing.assert_array_equal(found, VALUES.astype(bool) if kind == "bool" else VALUES)


@pytest.mark.parametrize("kind", TYPES)
def test_written_variables_equal_those_of_paddle_to_the_byte(tmp_path: Path, kind: str) -> None:
    array = VALUES.astype(kind)
    write_paddle_variable(tmp_path / "ours", array)
    paddle.save(paddle.to_tensor(array), str(tmp_path / "theirs"), use_binary_format=True)
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    np.testing.assert_array_equal(paddle.load(str(tmp_path / "ours"), return_numpy=True), array)


def test_a_folder_of_variables_is_read_under_the_names_of_its_files(tmp_path: Path) -> None:
    arrays = {"word_embedding": np.ones((3, 2), np.float32), "pooled_fc.w_0": np.arange(4, dtype=np.float16)}
    for name, array in arrays.items():
        write_paddle_variable(tmp_path / name, array)
    np.testing.assert_equal(read_arrays(tmp_path), arrays)
    (tmp_path / "notes.txt").write_text("x" * 50)
    with pytest.raises(InputError, match=r"notes.txt: is not a Paddle variable"):
        read_arrays(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        read_arrays(tmp_path / "missing")


def test_a_folder_may_hold_more_files_than_a_process_may_open(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for number in range(150):
        write_paddle_variable(tmp_path / f"v{number}", np.full(2, number, np.float32))
    with open(os.devnull) as lowest_free:  # the lowest descriptor that is not in use
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free.fileno() + 50, hard))
    try:
        assert read_arrays(tmp_path)["v149"].tolist() == [149, 149]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_link_to_an_array_is_read_and_a_link_to_anything_else_is_refused(tmp_path: Path) -> None:
    write_paddle_variable(tmp_path / "elsewhere", np.ones(2, np.float32))
    (tmp_path / "secret").write_text("a password of twenty bytes and more")
    link = tmp_path / "params" / "a"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "elsewhere")
    assert read_arrays(link.parent)["a"].tolist() == [1, 1]
    for target, message in ((tmp_path / "secret", "is not a Paddle variable"), (link, "no such file")):
        link.unlink()
        link.symlink_to(target)
        with pytest.raises(InputError, match=message) as caught:
            read_arrays(link.parent)
        assert "password" not in str(caught.value)


def variable(description: bytes, data: bytes = bytes(8), size: int | None = None) -> bytes:
    """Return the bytes of a variable with any description."""
    length = struct.pack("<i", len(description) if size is None else size)
    return bytes(16) + length + description + data


HUGE = b"\xff" * 8 + b"\x7f"  # 2**63 - 1
DAMAGED = "the description of its array is damaged"
HOSTILE = {
    "overflow": (variable(b"\x08\x05" + (b"\x10" + HUGE) * 3), "but 8 are stored"),
    "more than the file": (variable(b"\x08\x05\x10" + b"\xff\xff\xff\xff\x7f"), "but 8 are stored"),
    "no elements of many": (variable(b"\x08\x05\x10\x00\x10" + HUGE, b""), "a: "),
    "unknown type": (variable(b"\x08\x63\x10\x02"), DAMAGED),
    "unknown tag": (variable(b"\x08\x05\x1a\x02"), DAMAGED),
    "cut number": (variable(b"\x08\x05\x10\x82"), DAMAGED),
    "long description": (
        variable(b"\x08\x05\x10" + b"\x82" * 1000),
        "array is truncated, or too long",
    ),
    "huge description": (variable(b"\x08\x05\x10\x02", size=2**31 - 1), "description of its array is truncated"),
    "many dimensions": (variable(b"\x08\x05" + b"\x10\x01" * 9, bytes(4)), "at most 8 sizes"),
    "bytes at the end": (variable(b"\x08\x05\x10\x02", bytes(9)), "has 1 byte more than its arrays"),
}


@pytest.mark.parametrize(("data", "message"), HOSTILE.values(), ids=HOSTILE)
def test_a_damaged_variable_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_arrays(tmp_path / "a")
