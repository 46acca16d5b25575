"""The safetensors format against the library, and headers that do not describe the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from ernie_gram.formats.untrusted.arrays import forget_pages
from ernie_gram.formats.untrusted.reading import read_arrays
from ernie_gram.run.checkpoint import save_safetensors
from reader.errors import InputError
from tests.ernie_gram.formats.untrusted.test_paddle_files import ARRAYS, assert_equal


def written(path: Path, header: dict[str, Any] | str, data: bytes = b"") -> Path:
    """Write a file with any header, and return its path."""
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def test_arrays_of_the_library_are_read_and_what_is_written_is_read_by_the_library(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    save_file({name: array.copy(order="C") for name, array in ARRAYS.items()}, theirs)
    save_safetensors(ours, ARRAYS)
    with safe_open(ours, "np") as file:
        assert file.metadata() == {"format": "np"}
    stored = read_arrays(theirs)
    # float32 is not copied from the mapped file, and can be read again after its memory is given back.
    assert not any(array.flags.writeable for array in stored.values() if array.dtype == np.float32)
    for array in (*stored.values(), np.ones(3000, np.float32)[1:]):
        before = array.copy()
        forget_pages(array)
        np.testing.assert_array_equal(array, before)
    for arrays in (stored, load_file(ours)):
        assert_equal(arrays, ARRAYS)


def test_storage_in_16_and_64_bits_becomes_float32(tmp_path: Path) -> None:
    values = np.array([1.0, -2.5, 0.15625, np.inf], np.float32)  # exact in every type
    bfloat16 = (values.view(np.uint32) >> 16).astype("<u2").tobytes()
    data = values.astype("<f2").tobytes() + 2 * bfloat16 + values.astype("<f8").tobytes()
    header = {
        "half": entry("F16", [4], [0, 8]),
        "brain": entry("BF16", [2, 2], [8, 16]),
        "of Paddle": entry("U16", [4], [16, 24]),
        "double": entry("F64", [4], [24, 56]),
    }
    stored = read_arrays(written(tmp_path / "model.safetensors", header, data))
    for array in stored.values():
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array.reshape(-1), values)
    assert stored["brain"].shape == (2, 2)


HOSTILE: dict[str, tuple[Any, str]] = {
    "overflow": ({"a": entry(shape=[2**32, 2**32, 2**32])}, "overflow"),
    "many dimensions": ({"a": entry(shape=[2, *[1] * 64])}, "at most 8 sizes"),
    "unknown type": ({"a": entry("O")}, "unknown variant `O`"),
    "unread type": ({"a": entry("F8_E4M3", [8])}, "'a': the dtype 'F8_E4M3' is not one of"),
    "overlap": ({"a": entry(), "b": entry()}, "damaged or truncated"),
    "line break in a name": ({"a\nb": entry()}, "not printable text"),
    "long name": ({"a" * 501: entry()}, "not printable text"),
    "broken JSON": ('{"a": ', "line 1 column 6"),
}


@pytest.mark.parametrize(("header", "message"), HOSTILE.values(), ids=HOSTILE)
def test_a_header_that_does_not_describe_the_file_is_refused(tmp_path: Path, header: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_arrays(written(tmp_path / "model.safetensors", header, bytes(8)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("length", [1000, 2**64 - 1])
def test_a_header_longer_than_the_file_is_refused_before_anything_is_read(tmp_path: Path, length: int) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(length.to_bytes(8, "little") + b'{"a": 1}')
    with pytest.raises(InputError, match=r"model\.safetensors: "):
        read_arrays(path)
