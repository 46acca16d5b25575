"""The safetensors format: eight bytes with the length of a JSON header, the header, and the bytes of the arrays.

The `safetensors` library checks the header. The arrays are read here, because its numpy reader knows no bfloat16.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from ernie_gram.formats.untrusted.arrays import TYPES, StoredArrays, view_of_bytes
from ernie_gram.run.checkpoint import save_safetensors
from reader.errors import InputError, quoted
from reader.system.untrusted_text import MAX_BYTES, json_value

LENGTH_BYTES = 8
NAMES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "BOOL": "bool"} | {
    f"{kind[0].upper()}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)
}
# Paddle stores the bits of bfloat16 so, and has no 16-bit unsigned numbers itself.
NAMES["U16"] = "bfloat16"


def is_safetensors(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a safetensors file."""
    return start[LENGTH_BYTES : LENGTH_BYTES + 1] == b"{"


def read_safetensors(path: Path, data: memoryview) -> StoredArrays:
    """Return the arrays of a safetensors file as views of `data`, its bytes (memory-mapped).

    Raises ValueError if the header does not describe exactly the bytes that follow it: unknown types, wrong or
    overflowing shapes, gaps, overlaps, a truncated file, bytes at the end.
    """
    first = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "little")
    if first > MAX_BYTES:
        raise ValueError(f"damaged or truncated: its header claims {first:,} bytes, more than {MAX_BYTES:,}")
    try:
        with safe_open(path, "np"):
            pass
    except SafetensorError as error:
        raise ValueError(f"damaged or truncated: {error}") from error
    header = json_value(bytes(data[LENGTH_BYTES:first]).decode())
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        stored_as = NAMES.get(entry["dtype"])
        if stored_as is None:
            raise ValueError(f"{quoted(name)}: the dtype {quoted(entry['dtype'])} is not one of {', '.join(NAMES)}")
        begin, end = entry["data_offsets"]
        arrays[name] = view_of_bytes(data[first + begin : first + end], TYPES[stored_as], entry["shape"])
    return StoredArrays(arrays)


def write_safetensors(path: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> None:
    """Write arrays as a safetensors file into a folder that `atomic_folder` made.

    `metadata` defaults to {"format": "np"}, which PaddleNLP and transformers require. Raises InputError if the file
    cannot be written.
    """
    # The library writes the buffer of an array without regard to its strides.
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    try:
        save_safetensors(path, contiguous, dict(metadata or {"format": "np"}))
    except SafetensorError as error:
        raise InputError(f"{path}: could not be written: {error}") from error
