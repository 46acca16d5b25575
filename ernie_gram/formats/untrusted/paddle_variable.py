"""Paddle's format of one variable per file, as in the `params/` folder of upstream's static models.

    uint32 0 (version), uint64 0 (levels of detail: a parameter has none), uint32 0 (version),
    int32 size of the description, the description, the elements

The description is the protocol buffer `TensorDesc`: field 1 is the element type, field 2 the sizes of the dimensions
(paddle/fluid/framework/lod_tensor.cc and framework.proto). Integers are little-endian.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from ernie_gram.formats.untrusted.arrays import TYPES, StoredArrays, view_of_bytes
from reader.errors import InputError

# Values of VarType.Type in framework.proto.
NUMBERS = {
    **dict(enumerate(("bool", "int16", "int32", "int64", "float16", "float32", "float64"))),
    **dict(enumerate(("uint8", "int8", "bfloat16"), start=20)),
}

START = bytes(16)
TYPE_TAG, SIZE_TAG = 1 << 3, 2 << 3
MAX_DESCRIPTION = 1000  # bytes


def is_paddle_variable(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a variable."""
    return len(start) > len(START) and start.startswith(START)


def read_paddle_variable(path: Path, data: memoryview) -> StoredArrays:
    """Return the only array of a file under the file's name; raises ValueError unless the file holds exactly one."""
    if not is_paddle_variable(bytes(data[:20])):
        raise ValueError("is not a Paddle variable")
    first = len(START) + 4
    last = first + int.from_bytes(data[first - 4 : first], "little")
    # A description is short; a long one would take far more memory and time than the file is large.
    if last > min(len(data), first + MAX_DESCRIPTION):
        raise ValueError("the description of its array is truncated, or too long")
    numbers = _numbers(bytes(data[first:last]))
    if len(numbers) % 2:
        raise ValueError("the description of its array is truncated")
    fields = list(zip(numbers[::2], numbers[1::2], strict=True))
    stored_as = [NUMBERS.get(value) for tag, value in fields if tag == TYPE_TAG]
    shape = [value for tag, value in fields if tag == SIZE_TAG]
    if len(stored_as) + len(shape) != len(fields) or len(stored_as) != 1 or stored_as[0] is None:
        raise ValueError("the description of its array is damaged, or the array is not one of numbers")
    return StoredArrays({path.name: view_of_bytes(data[last:], TYPES[stored_as[0]], shape)})


def _numbers(data: bytes) -> list[int]:
    """Return the variable-length integers of a protocol buffer: 7 bits per byte, the lowest first."""
    numbers, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(value)
            value = shift = 0
    return numbers


def write_paddle_variable(path: Path, array: np.ndarray) -> None:
    """Write an array as a file of one variable: numbers of 16 to 64 bits, bool and bytes.

    The folder is one that `atomic_folder` made. Raises InputError for a type that Paddle does not have.
    """
    number = next((number for number, name in NUMBERS.items() if name == array.dtype.name), None)
    if number is None:
        raise InputError(f"{path}: not written, Paddle has no variables of {array.dtype}")
    fields = [(TYPE_TAG, number), *((SIZE_TAG, size) for size in array.shape)]
    description = b"".join(_encoded(tag) + _encoded(value) for tag, value in fields)
    data = np.asarray(array, array.dtype.newbyteorder("<"), order="C")
    with path.open("wb") as file:
        file.write(START + struct.pack("<i", len(description)) + description)
        file.write(data.data if data.size else b"")


def _encoded(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
