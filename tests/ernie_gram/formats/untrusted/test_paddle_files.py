"""Paddle's two kinds of files, against Paddle's own readers and writers."""

from __future__ import annotations

import gc
import os
import pickle
import resource
import struct
from pathlib import Path

import numpy as np
import paddle
import pytest

from ernie_gram.formats.untrusted.reading import read_arrays
from ernie_gram.graph import dynamic_mode
from reader.errors import InputError

pytestmark = pytest.mark.usefixtures("dynamic_mode")

ARRAYS = {
    "matrix": np.arange(6, dtype=np.float32).reshape(2, 3),
    "transposed": np.arange(6, dtype=np.float32).reshape(2, 3).T,  # in the file in Fortran order
    "scalar": np.array(2.5, np.float32),
    "empty": np.zeros((0, 4), np.float32),
    "ids": np.arange(5),
    "bytes": np.arange(3, dtype=np.uint8),
    "flags": np.array([True, False]),
    "词": np.array([1.5], np.float32),
}


def assert_equal(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_the_state_of_a_layer_and_tensors_of_every_type_are_read(tmp_path: Path, protocol: int) -> None:
    layer, path = paddle.nn.Sequential(paddle.nn.Linear(3, 2), paddle.nn.LayerNorm(2)), tmp_path / "a.pdparams"
    paddle.save(layer.state_dict(), str(path), protocol=protocol)
    assert_equal(read_arrays(path), {name: value.numpy() for name, value in layer.state_dict().items()})
    values = np.array([1.0, -2.5, 0.15625], np.float32)
    tensors = {kind: paddle.to_tensor(values).astype(kind) for kind in ("float32", "float16", "bfloat16", "float64")}
    paddle.save({**tensors, "array": ARRAYS["ids"]}, str(path), protocol=protocol)
    assert_equal(read_arrays(path), {**dict.fromkeys(tensors, values), "array": ARRAYS["ids"]})


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_numpy_arrays_pickled_by_python_are_read(tmp_path: Path, protocol: int) -> None:
    (tmp_path / "a.pdparams").write_bytes(pickle.dumps({**ARRAYS, "number": np.float32(3)}, protocol))
    assert_equal(read_arrays(tmp_path / "a.pdparams"), {**ARRAYS, "number": np.array(3, np.float32)})


def test_arrays_in_slices_are_refused_with_the_way_out(tmp_path: Path) -> None:
    entries = {"w@@.0": ARRAYS["ids"], "UnpackBigParamInfor@@": {"w": {"OriginShape": (5,), "slices": ["w@@.0"]}}}
    (tmp_path / "a.pdparams").write_bytes(pickle.dumps(entries, 2))
    with pytest.raises(InputError, match=r"in slices; save it again with paddle\.save\(\.\.\., protocol=4\)"):
        read_arrays(tmp_path / "a.pdparams")


def test_entries_that_are_no_arrays_are_left_out(tmp_path: Path) -> None:
    entries = {"a": ARRAYS["ids"], "epoch": 3, "history": [1, 2]}
    (tmp_path / "a.pdparams").write_bytes(pickle.dumps(entries, 4))
    assert read_arrays(tmp_path / "a.pdparams").keys() == {"a"}
    (tmp_path / "a.pdparams").write_bytes(pickle.dumps({"epoch": 3}, 4))
    with pytest.raises(InputError, match="holds no arrays"):
        read_arrays(tmp_path / "a.pdparams")


VALUES = (
    np.arange(2 * 300).reshape(2, 300).T % 250 - 3
)  # exact in bfloat16; a size that takes two bytes; not contiguous
TYPES = ["float32", "float16", "float64", "int64", "int32", "int16", "bool"]


def write_paddle_variable(path: Path, array: np.ndarray, kind: str = "") -> None:
    """Write a file of one variable with Paddle."""
    with dynamic_mode():
        paddle.save(paddle.to_tensor(array).astype(kind or str(array.dtype)), str(path), use_binary_format=True)


@pytest.mark.parametrize("kind", [*TYPES, "bfloat16"])
def test_variables_of_paddle_are_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "word_embedding"
    write_paddle_variable(path, VALUES, kind)
    found = read_arrays(path)["word_embedding"]
    assert found.dtype == ("float32" if "float" in kind else kind)
    np.testing.assert_array_equal(found, VALUES.astype(bool) if kind == "bool" else VALUES)


def test_a_folder_of_variables_is_read_under_the_names_of_its_files(tmp_path: Path) -> None:
    arrays = {"word_embedding": np.ones((3, 2), np.float32), "pooled_fc.w_0": np.arange(4, dtype=np.float16)}
    for name, array in arrays.items():
        write_paddle_variable(tmp_path / name, array)
    assert_equal(read_arrays(tmp_path), {name: array.astype(np.float32) for name, array in arrays.items()})
    (tmp_path / "notes.txt").write_text("x" * 50)
    with pytest.raises(InputError, match=r"notes.txt: is not a Paddle variable"):
        read_arrays(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        read_arrays(tmp_path / "missing")


def test_a_folder_may_hold_more_files_than_a_process_may_open(tmp_path: Path) -> None:
    gc.collect()  # errors that other tests have caught keep files mapped
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
    "bytes at the end": (variable(b"\x08\x05\x10\x02", bytes(9)), "takes 8 bytes, but 9 are stored"),
}


@pytest.mark.parametrize(("data", "message"), HOSTILE.values(), ids=HOSTILE)
def test_a_damaged_variable_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_arrays(tmp_path / "a")
