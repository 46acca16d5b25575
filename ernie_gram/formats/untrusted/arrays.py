"""The arrays of a file: their types, the checks of names and shapes, and the conversion to float32.

Every reader of this package returns `RawArray` records, which are views of the file's bytes: memory-mapped, or read
into at most as much memory as the file is large. `checked_arrays` makes the arrays of the model of them, after names,
shapes and total size have been checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reader.errors import InputError

# Element types that a file may hold, and the little-endian numpy type of their bytes. Complex numbers, strings and
# Python objects are missing on purpose.
NUMPY_TYPES: Mapping[str, np.dtype] = {
    "float32": np.dtype("<f4"),
    "float16": np.dtype("<f2"),
    "bfloat16": np.dtype("<u2"),  # numpy has no bfloat16: the bits are the upper half of a float32
    "float64": np.dtype("<f8"),
    "bool": np.dtype("u1"),  # a byte other than 0 and 1 would be an invalid numpy bool
    "int8": np.dtype("i1"),
    "int16": np.dtype("<i2"),
    "int32": np.dtype("<i4"),
    "int64": np.dtype("<i8"),
    "uint8": np.dtype("u1"),
    "uint16": np.dtype("<u2"),
    "uint32": np.dtype("<u4"),
    "uint64": np.dtype("<u8"),
}
FLOATS = ("float32", "float16", "bfloat16", "float64")

MAX_DIMENSIONS = 8
MAX_NAME = 500  # characters
# Several names may refer to the same bytes (tied weights). Without a bound, a small file could fill the memory.
MAX_SHARING = 4

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class RawArray:
    """An array as it is stored: a view of the file's bytes, of type NUMPY_TYPES[stored_as], and the element type."""

    values: np.ndarray
    stored_as: str


@dataclass(frozen=True)
class RawArrays:
    """The arrays that a reader found in a file, and one note for each thing in the file that is not an array."""

    arrays: dict[str, RawArray]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class StoredArrays:
    """The arrays of a file.

    Attributes:
        arrays: name -> array, writable and contiguous; floating-point numbers are float32, other types are unchanged.
        notes: what the conversion to float32 changed and what was left out, one line each, for the console.
    """

    arrays: dict[str, np.ndarray]
    notes: tuple[str, ...] = ()


def quoted(value: object) -> str:
    """Return a value of a file for an error message: without line breaks, and shortened if it is long.

    Of containers only one level is shown: the full text of nested ones may be endless.
    """
    if isinstance(value, list | tuple):
        return f"[{', '.join(quoted(part) if _is_plain(part) else '...' for part in value[:MAX_DIMENSIONS])}]"
    if not _is_plain(value):
        return type(value).__name__
    text = repr(value[:100] if isinstance(value, str) else value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def one_line(error: Exception) -> str:
    """Return the message of an error of a library as one line of at most 200 characters."""
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else f"{text[:197]}..."


def check_name(name: object) -> str:
    """Return the name of an array; raises ValueError unless it is printable text of 1 to 500 characters."""
    if not isinstance(name, str) or not name or len(name) > MAX_NAME or not name.isprintable():
        raise ValueError(f"the name {quoted(name)} is not printable text of 1 to {MAX_NAME} characters")
    return name


def checked_sizes(sizes: object) -> tuple[int, ...]:
    """Return one number per dimension as a tuple; raises ValueError for negative numbers and too many dimensions."""
    if not isinstance(sizes, list | tuple) or len(sizes) > MAX_DIMENSIONS:
        raise ValueError(f"the shape {quoted(sizes)} is not a list of at most {MAX_DIMENSIONS} sizes")
    for size in sizes:
        # bool is a subclass of int
        if type(size) is not int or size < 0:
            raise ValueError(f"the shape {quoted(sizes)} holds something other than sizes of 0 and more")
    return tuple(sizes)


def checked_shape(shape: object) -> tuple[int, ...]:
    """Return a shape as a tuple; raises ValueError as `checked_sizes` does, and for a product that would overflow."""
    sizes = checked_sizes(shape)
    # numpy multiplies sizes as 64-bit integers, also beside a size of 0.
    if math.prod(max(size, 1) for size in sizes) >= 2**56:
        raise ValueError(f"the shape {quoted(shape)} is too large")
    return sizes


def view_of_bytes(
    data: bytes | bytearray | memoryview, stored_as: str, shape: object, fortran: bool = False
) -> RawArray:
    """Return bytes as an array without a copy; raises ValueError unless shape and type give their exact number."""
    sizes, element = checked_shape(shape), NUMPY_TYPES[stored_as]
    needed = math.prod(sizes) * element.itemsize
    if needed != len(data):
        raise ValueError(f"shape {list(sizes)} of {stored_as} takes {needed} bytes, but {len(data)} are stored")
    values = np.frombuffer(data, element).reshape(sizes, order="F" if fortran else "C")
    return RawArray(values, stored_as)


def checked_arrays(
    path: Path, found: RawArrays, file_size: int, check: Callable[[Shapes], None] | None = None
) -> StoredArrays:
    """Return copies of the arrays of a file, floating-point numbers as float32.

    `file_size` is the number of bytes that the arrays come from. `check` is called with name -> shape before anything
    is allocated; it may raise InputError. Raises InputError if there is no array, for a name that is not printable
    text, if the arrays are together larger than 4 times the file, or if a float64 number exceeds the range of float32.
    """
    raw = found.arrays
    if not raw:
        raise InputError(f"{path}: holds no arrays at its top level; a dict of names and arrays alone is read")
    total = sum(array.values.nbytes for array in raw.values())
    if total > MAX_SHARING * file_size:
        raise InputError(f"{path}: its {file_size:,} bytes are used repeatedly for arrays of {total:,} bytes; not read")
    try:
        shapes = {check_name(name): array.values.shape for name, array in raw.items()}
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    if check is not None:
        check(shapes)
    arrays = {name: _converted(path, name, array) for name, array in raw.items()}
    return StoredArrays(arrays, (*found.notes, *_type_notes(path, raw)))


def _converted(path: Path, name: str, array: RawArray) -> np.ndarray:
    if array.stored_as == "bool":
        return np.array(array.values != 0, order="C")
    if array.stored_as == "bfloat16":
        bits = np.array(array.values, np.uint32, order="C")
        bits <<= np.uint32(16)
        return bits.view(np.float32)
    if array.stored_as not in FLOATS:
        return np.array(array.values, NUMPY_TYPES[array.stored_as].newbyteorder("="), order="C")
    try:
        with np.errstate(over="raise"):
            return np.array(array.values, np.float32, order="C")
    except FloatingPointError as error:
        raise InputError(f"{path}: {quoted(name)} holds float64 numbers beyond the range of float32") from error


def _type_notes(path: Path, raw: Mapping[str, RawArray]) -> list[str]:
    notes = []
    for stored_as in FLOATS[1:]:
        count = sum(array.stored_as == stored_as for array in raw.values())
        if count:
            rounded = "rounded to" if stored_as == "float64" else "read as"
            notes.append(f"{path.name}: {count} of {len(raw)} arrays stored as {stored_as}, {rounded} float32")
    return notes
