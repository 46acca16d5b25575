"""The arrays of a file: the checks of names, shapes and sizes, the conversion to float32, and safetensors files.

Every reader of this package returns arrays that are views of the file's bytes: memory-mapped, or read into at most as
much memory as the file is large. `checked_arrays` checks their names and total size, and converts the numbers.

A safetensors file has eight bytes with the length of a JSON header, the header, and the bytes of the arrays. The
library checks the header. The arrays are read here, because its numpy reader knows no bfloat16.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from safetensors import SafetensorError, safe_open

from ernie_gram.run.checkpoint import Arrays
from reader.errors import InputError, quoted
from reader.system.untrusted_text import MAX_BYTES, json_value

# numpy has no bfloat16: a record of its bits, the upper half of a float32, stands for it.
BFLOAT16 = np.dtype([("bfloat16", "<u2")])
# Element types that a file may hold. Complex numbers, strings and Python objects are missing on purpose.
TYPES: Mapping[str, np.dtype] = {"bfloat16": BFLOAT16} | {
    name: np.dtype(name).newbyteorder("<")
    for name in (
        *("float32", "float16", "float64", "bool", "int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "uint32", "uint64"),
    )
}

MAX_DIMENSIONS = 8
MAX_NAME = 500  # characters
# Several names may refer to the same bytes (tied weights). Without a bound, a small file could fill the memory.
MAX_SHARING = 4

# Of safetensors files.
LENGTH_BYTES = 8
NAMES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "BOOL": "bool"} | {
    f"{kind[0].upper()}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)
}
# Paddle stores the bits of bfloat16 so, and has no 16-bit unsigned numbers itself.
NAMES["U16"] = "bfloat16"


def checked_sizes(sizes: object) -> tuple[int, ...]:
    """Return a shape as a tuple; raises ValueError for anything but at most MAX_DIMENSIONS numbers of 0 and more."""
    # bool is a subclass of int
    if (
        not isinstance(sizes, list | tuple)
        or len(sizes) > MAX_DIMENSIONS
        or any(type(size) is not int or size < 0 for size in sizes)
    ):
        raise ValueError(f"the shape {quoted(sizes)} is not a list of at most {MAX_DIMENSIONS} sizes of 0 and more")
    return tuple(sizes)


def view_of_bytes(
    data: bytes | memoryview, dtype: np.dtype, shape: object, order: Literal["C", "F"] = "C"
) -> np.ndarray:
    """Return bytes as an array without a copy; raises ValueError unless shape and type give their exact number."""
    sizes = checked_sizes(shape)
    needed = math.prod(sizes) * dtype.itemsize
    if needed != len(data):
        raise ValueError(f"the shape {list(sizes)} takes {needed} bytes, but {len(data)} are stored")
    return np.frombuffer(data, dtype).reshape(sizes, order=order)


def forget_pages(array: np.ndarray) -> None:
    """Give back the memory of an array in a file that is mapped for reading; where it is read again, so is the file.

    Nothing happens to other arrays.
    """
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    mapped = getattr(base, "obj", None)
    if isinstance(mapped, mmap.mmap) and not array.flags.writeable and array.flags.c_contiguous:
        first = array.ctypes.data - np.frombuffer(mapped, np.uint8).ctypes.data
        start = first // mmap.PAGESIZE * mmap.PAGESIZE
        mapped.madvise(mmap.MADV_DONTNEED, start, first + array.nbytes - start)


def checked_arrays(path: Path, arrays: Arrays, file_size: int) -> Arrays:
    """Return the arrays of a file, contiguous, floating-point numbers as float32: views where they are that already.

    `file_size` is the number of bytes that the arrays come from. Raises InputError if there is no array, for a name
    that is not printable text, or if the arrays are together larger than 4 times the file.
    """
    if not arrays:
        raise InputError(f"{path}: holds no arrays at its top level; a dict of names and arrays alone is read")
    total = sum(array.nbytes for array in arrays.values())
    if total > MAX_SHARING * file_size:
        raise InputError(f"{path}: its {file_size:,} bytes are used repeatedly for arrays of {total:,} bytes; not read")
    for name in arrays:
        if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME or not name.isprintable():
            raise InputError(f"{path}: the name {quoted(name)} is not printable text of 1 to {MAX_NAME} characters")
    return {name: _converted(array) for name, array in arrays.items()}


def _converted(array: np.ndarray) -> np.ndarray:
    if array.dtype == BFLOAT16:
        bits = np.array(array.view("<u2"), np.uint32, order="C")
        bits <<= np.uint32(16)
        return bits.view(np.float32)
    if not np.issubdtype(array.dtype, np.floating):
        return array  # no parameter
    with np.errstate(over="ignore"):  # gives infinity, which is refused later
        return np.asarray(array, np.float32, order="C")


def read_safetensors(path: Path, data: memoryview) -> Arrays:
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
    return arrays
