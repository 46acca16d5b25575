"""Paddle's format of one variable per file, as in the `params/` folder of upstream's static models.

    uint32 0 (version), uint64 number of levels of detail, for each level uint64 size and its bytes,
    uint32 0 (version), int32 size of the description, the description, the elements

The description is the protocol buffer `TensorDesc`: field 1 is the element type, field 2 the sizes of the dimensions
(paddle/fluid/framework/lod_tensor.cc and framework.proto). Integers are little-endian.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ernie_gram.formats.untrusted.arrays import (
    MAX_DIMENSIONS,
    NUMPY_TYPES,
    RawArray,
    RawArrays,
    checked_shape,
    view_of_bytes,
)
from reader.errors import InputError
from reader.system.atomic_files import atomic_file

# Values of VarType.Type in framework.proto.
TYPES = {
    **dict(enumerate(("bool", "int16", "int32", "int64", "float16", "float32", "float64"))),
    **dict(enumerate(("uint8", "int8", "bfloat16"), start=20)),
}
TYPE_NUMBERS = {stored_as: number for number, stored_as in TYPES.items()}

VERSION = bytes(4)
MAX_LEVELS = 8
# A type and the sizes of the dimensions; a number of a protocol buffer takes at most ten bytes.
MAX_DESCRIPTION = 11 * (1 + MAX_DIMENSIONS) + 11


def is_paddle_variable(start: bytes) -> bool:
    """Return whether the first bytes of a file can be those of a variable."""
    return len(start) >= 20 and start.startswith(VERSION) and start[4] <= MAX_LEVELS and not any(start[5:12])


def read_paddle_variable(path: Path, data: memoryview) -> RawArrays:
    """Return the only array of a file under the file's name; raises InputError unless the file holds exactly one."""
    try:
        array, end = next_variable(data, 0)
        if end != len(data):
            raise ValueError(f"{len(data) - end:,} bytes follow the first variable; one variable per file is read")
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    return RawArrays({path.name: array})


def next_variable(data: memoryview, offset: int) -> tuple[RawArray, int]:
    """Return the variable that begins at a byte offset, and the offset of its end; raises ValueError if damaged."""
    levels_at = offset + len(VERSION)
    offset = levels_at + 8
    levels = int.from_bytes(_slice(data, levels_at, 8), "little")
    if data[levels_at - 4 : levels_at] != VERSION or levels > MAX_LEVELS:
        raise ValueError("is not a Paddle variable of version 0")
    for _ in range(levels):  # sequence lengths of a batch; a parameter has none
        size = int.from_bytes(_slice(data, offset, 8), "little")
        _slice(data, offset + 8, size)
        offset += 8 + size
    size = int.from_bytes(_slice(data, offset + 4, 4), "little", signed=True)
    if data[offset : offset + 4] != VERSION or not 0 <= size <= MAX_DESCRIPTION:
        raise ValueError("its tensor is not of version 0, or its description is too long")
    stored_as, shape = _described(bytes(_slice(data, offset + 8, size)))
    offset += 8 + size
    length = math.prod(shape) * NUMPY_TYPES[stored_as].itemsize
    return view_of_bytes(_slice(data, offset, length), stored_as, shape), offset + length


def _slice(data: memoryview, offset: int, size: int) -> memoryview:
    if offset + size > len(data):
        raise ValueError(f"truncated; {offset + size:,} bytes are needed, the file has {len(data):,}")
    return data[offset : offset + size]


def _described(description: bytes) -> tuple[str, tuple[int, ...]]:
    """Return element type and shape of a TensorDesc."""
    stored_as, shape = None, []
    numbers = _numbers(description)
    for tag in numbers:
        value = next(numbers, None)
        if value is None:
            raise ValueError("the description of the tensor is truncated")
        if tag == 1 << 3:
            stored_as = TYPES.get(value)
        elif tag == 2 << 3:
            shape.append(value)
        else:
            raise ValueError(f"the description of the tensor holds the unknown tag {tag}")
    if stored_as is None:
        raise ValueError("the element type of the tensor is missing or not a number type")
    return stored_as, checked_shape(shape)


def _numbers(data: bytes) -> Iterator[int]:
    """Yield the variable-length integers of a protocol buffer: 7 bits per byte, the lowest first."""
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield value
            value = shift = 0
    if shift:
        raise ValueError("the description of the tensor is truncated")


def write_paddle_variable(path: Path, array: np.ndarray) -> None:
    """Write an array atomically as a file of one variable: numbers of 16 to 64 bits, bool and bytes.

    Raises InputError if the file cannot be written, or for a type that Paddle does not have.
    """
    number = TYPE_NUMBERS.get(array.dtype.name)
    if number is None:
        raise InputError(f"{path}: not written, Paddle has no variables of {array.dtype}")
    description = b"\x08" + _number(number) + b"".join(b"\x10" + _number(size) for size in array.shape)
    header = VERSION + bytes(8) + VERSION + struct.pack("<i", len(description)) + description
    data = np.asarray(array, array.dtype.newbyteorder("<"), order="C")
    with atomic_file(path) as partial, partial.open("wb") as file:
        file.write(header)
        file.write(data.data if data.size else b"")


def _number(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
