"""The safetensors format: eight bytes with the length of a JSON header, the header, and the bytes of the arrays.

The header is checked here rather than by the `safetensors` library, because the library's numpy reader knows no
bfloat16, does not name the array that is wrong, and silently prefers one of two equal names. Format:
https://huggingface.co/docs/safetensors
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

from ernie_gram.formats.untrusted.arrays import RawArray, RawArrays, check_name, quoted, view_of_bytes
from ernie_gram.formats.untrusted.json_file import parse_object
from ernie_gram.run.checkpoint import save_safetensors
from reader.errors import InputError
from reader.system.atomic_files import atomic_file

MAX_HEADER = 100_000_000  # bytes; the limit of the library
LENGTH_BYTES = 8

TYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "BOOL": "bool"} | {
    f"{kind[0].upper()}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)
}


def is_safetensors(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a safetensors file."""
    return start[LENGTH_BYTES : LENGTH_BYTES + 1] == b"{"


def read_safetensors(path: Path, data: memoryview) -> RawArrays:
    """Return the arrays of a safetensors file as views of `data`, its bytes (memory-mapped).

    Raises InputError if the header does not describe exactly the bytes that follow it: unknown types, negative or
    overflowing shapes, gaps, overlaps, a truncated file, bytes at the end.
    """
    if len(data) < LENGTH_BYTES:
        raise InputError(f"{path}: truncated; a safetensors file starts with {LENGTH_BYTES} bytes of length")
    length = int.from_bytes(data[:LENGTH_BYTES], "little")
    first = LENGTH_BYTES + length
    if length > MAX_HEADER:
        raise InputError(f"{path}: the header claims {length:,} bytes; at most {MAX_HEADER:,} are allowed")
    if first > len(data):
        raise InputError(f"{path}: truncated; the header claims {length:,} bytes, but the file has {len(data):,}")
    header = parse_object(bytes(data[LENGTH_BYTES:first]), f"{path}: header")
    header.pop("__metadata__", None)
    arrays: dict[str, RawArray] = {}
    ranges = []
    for name, entry in header.items():
        try:
            begin, end = _offsets(entry, len(data) - first)
            arrays[check_name(name)] = _view(entry, data[first + begin : first + end])
        except ValueError as error:
            raise InputError(f"{path}: {quoted(name)}: {error}") from error
        ranges.append((begin, end, name))
    _check_contiguous(path, ranges, len(data) - first)
    return RawArrays(arrays)


def _offsets(entry: Any, size: int) -> tuple[int, int]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError("its entry in the header does not consist of dtype, shape and data_offsets")
    offsets = entry["data_offsets"]
    if not isinstance(offsets, list) or len(offsets) != 2 or any(type(offset) is not int for offset in offsets):
        raise ValueError(f"data_offsets {quoted(offsets)} are not two integers")
    if not 0 <= offsets[0] <= offsets[1] <= size:
        raise ValueError(f"data_offsets {quoted(offsets)} are not within the {size:,} bytes of data (truncated file?)")
    return offsets[0], offsets[1]


def _view(entry: dict[str, Any], data: memoryview) -> RawArray:
    stored_as = TYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if stored_as is None:
        raise ValueError(f"the dtype {quoted(entry['dtype'])} is not one of {', '.join(TYPES)}")
    return view_of_bytes(data, stored_as, entry["shape"])


def _check_contiguous(path: Path, ranges: list[tuple[int, int, str]], size: int) -> None:
    expected = 0
    for begin, end, name in sorted(ranges):
        if begin != expected:
            raise InputError(f"{path}: {quoted(name)} begins at byte {begin:,} of the data instead of {expected:,}")
        expected = end
    if expected != size:
        raise InputError(f"{path}: {size - expected:,} bytes after the last array belong to none")


def write_safetensors(path: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> None:
    """Write arrays atomically as a safetensors file.

    `metadata` defaults to {"format": "np"}, which PaddleNLP and transformers require. Raises InputError if the file
    cannot be written.
    """
    # The library writes the buffer of an array without regard to its strides.
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    with atomic_file(path) as partial:
        try:
            save_safetensors(partial, contiguous, dict(metadata or {"format": "np"}))
        except SafetensorError as error:
            raise InputError(f"{path}: could not be written: {error}") from error
