"""Files of every format: found by their content, and damaged ones never raise anything but InputError."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ernie_gram.formats.untrusted.reading import read_arrays
from ernie_gram.run.checkpoint import save_safetensors
from reader.errors import MAX_MESSAGE, InputError
from tests.ernie_gram.formats.untrusted.test_paddle_files import write_paddle_variable
from tests.support.torch_writer import tensor, write_archive

ARRAYS = {"weight": np.arange(6, dtype=np.float32).reshape(2, 3), "bias": np.array([0.5, -1.5], np.float32)}

WRITERS: dict[str, Callable[[Path], object]] = {
    "safetensors": lambda path: save_safetensors(path, ARRAYS),
    "pdparams": lambda path: path.write_bytes(pickle.dumps(ARRAYS, 4)),
    "pickle of protocol 2": lambda path: path.write_bytes(pickle.dumps(ARRAYS, 2)),
    "pickle of protocol 5": lambda path: path.write_bytes(pickle.dumps(ARRAYS, 5)),
    "PyTorch archive": lambda path: write_archive(path, {name: tensor(array) for name, array in ARRAYS.items()}),
    "Paddle variable": lambda path: write_paddle_variable(path, ARRAYS["weight"]),
}


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("name", ["weight", "weight.bin", "weight.pdparams.bak", "weight.safetensors"])
def test_the_format_is_found_by_the_content(tmp_path: Path, kind: str, name: str) -> None:
    WRITERS[kind](tmp_path / name)
    expected = {name: ARRAYS["weight"]} if kind == "Paddle variable" else ARRAYS
    np.testing.assert_equal(read_arrays(tmp_path / name), expected)


def test_a_header_of_640_bytes_is_not_taken_for_a_pickle(tmp_path: Path) -> None:
    header = json.dumps({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).ljust(640)
    path = tmp_path / "model.safetensors"
    path.write_bytes((640).to_bytes(8, "little") + header.encode() + bytes(4))
    assert path.read_bytes()[:2] == b"\x80\x02"
    assert read_arrays(path)["a"] == 0


@pytest.mark.parametrize("kind", WRITERS)
def test_every_truncated_file_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    WRITERS[kind](path)
    data = path.read_bytes()
    for length in {*range(0, len(data), 3), *range(len(data) - 20, len(data))}:
        path.write_bytes(data[:length])
        with pytest.raises(InputError, match="a: "):
            read_arrays(path)


@pytest.mark.parametrize("kind", WRITERS)
def test_flipped_bytes_give_arrays_or_one_line(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    WRITERS[kind](path)
    data = np.frombuffer(path.read_bytes(), np.uint8)
    random = np.random.default_rng(0)
    messages = []
    for trial in range(250):
        damaged = data.copy()
        positions = random.integers(0, len(data), 1 + trial % 3)
        damaged[positions] = random.integers(0, 256, len(positions))
        path.write_bytes(damaged.tobytes())
        try:
            arrays = read_arrays(path)
        except InputError as error:
            messages.append(str(error))
        else:
            assert all(isinstance(array, np.ndarray) for array in arrays.values())
    assert 30 < len(messages) < 250  # some damage lies in the numbers themselves, or in bytes without a meaning
    assert all("\n" not in message and len(message) < MAX_MESSAGE + 10 for message in messages)


def test_other_files_are_refused_with_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    for data, message in (
        (b"", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        (b"<!DOCTYPE html><html>", "not a safetensors file"),
        (b"cos\nsystem\n.", "not a safetensors file"),
    ):
        path.write_bytes(data)
        with pytest.raises(InputError, match=message):
            read_arrays(path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        read_arrays(tmp_path / "pipe")
