"""Paddle's two kinds of files: `.pdparams`, and one variable per file, as in `params/` of upstream's static models.

A `.pdparams` file is a pickled dict of names and numpy arrays, as `paddle.save` writes it. Paddle adds an entry that is
no array, the names of variables. It has no type uint16, and stores the bits of bfloat16 as uint16.

A variable (paddle/fluid/framework/lod_tensor.cc and framework.proto; integers are little-endian):

    uint32 0 (version), uint64 0 (levels of detail: a parameter has none), uint32 0 (version),
    int32 size of the description, the description, the elements

The description is the protocol buffer `TensorDesc`: field 1 is the element type, field 2 the sizes of the dimensions.
"""

from __future__ import annotations

import pickle
import re
import struct
from collections.abc import Mapping
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np

from ernie_gram.formats.untrusted.arrays import BFLOAT16, TYPES, checked_sizes, view_of_bytes
from ernie_gram.formats.untrusted.pickles import ArrayUnpickler, PickledArray
from ernie_gram.run.checkpoint import Arrays

SLICES = "UnpackBigParamInfor@@"


def read_pdparams(data: mmap) -> Arrays:
    """Return the arrays of a `.pdparams` file, without entries that are no arrays.

    Raises ValueError if the file refers to anything but arrays and plain containers, or is damaged.
    """
    entries = ArrayUnpickler(data).load()
    if SLICES in entries:
        raise ValueError("holds arrays of 1 GB and more in slices; save it again with paddle.save(..., protocol=4)")
    arrays = {}
    for name, entry in entries.items():
        # Paddle 2.1 and later store a tensor, as opposed to a state dict of arrays, as (variable name, array).
        array = entry[1] if isinstance(entry, tuple) and len(entry) == 2 else entry
        values = array.values if isinstance(array, PickledArray) else array
        if isinstance(values, np.ndarray):
            arrays[name] = values.view(BFLOAT16) if values.dtype == np.uint16 else values
    return arrays


class _ArrayPickler(pickle._Pickler):
    """Writes arrays under names of numpy that every version has: before 1.26, there is no `numpy._core`."""

    def save_global(self, value: Any, name: str | None = None) -> None:
        """Write the name of a function or class."""
        if name == "_reconstruct":
            self.write(b"cnumpy.core.multiarray\n_reconstruct\n")  # type: ignore[attr-defined]
        else:
            super().save_global(value, name)  # type: ignore[misc]


def write_pdparams(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as a `.pdparams` file of protocol 4, which `paddle.load` of Paddle 2 and 3 reads.

    The folder is one that `atomic_folder` made; the arrays hold numbers or bool.
    """
    with path.open("wb") as file:
        pickler = _ArrayPickler(file, 4)
        pickler.fast = True  # does not hold the bytes of all arrays until the end
        pickler.dump(
            {name: np.asarray(array, array.dtype.newbyteorder("<"), order="C") for name, array in arrays.items()}
        )


# Values of VarType.Type in framework.proto.
NUMBERS = {
    **dict(enumerate(("bool", "int16", "int32", "int64", "float16", "float32", "float64"))),
    **dict(enumerate(("uint8", "int8", "bfloat16"), start=20)),
}

START = bytes(16)
TYPE_TAG, SIZE_TAG = b"\x08", b"\x10"
# A number is stored with 7 bits per byte, the lowest first; the eighth says that more follow.
SIZE = re.compile(rb"\x10([\x80-\xff]*[\x00-\x7f])")
DESCRIPTION = re.compile(rb"\x08([\x00-\x7f])((?:%b)*)" % SIZE.pattern)
MAX_DESCRIPTION = 1000  # bytes


def is_paddle_variable(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a variable."""
    return len(start) > len(START) and start.startswith(START)


def read_paddle_variable(data: memoryview) -> np.ndarray:
    """Return the array of a variable; raises ValueError unless the bytes are exactly one."""
    if not is_paddle_variable(bytes(data[:20])):
        raise ValueError("is not a Paddle variable")
    first = len(START) + 4
    last = first + int.from_bytes(data[first - 4 : first], "little")
    # A description is short; a long one would take far more memory and time than the file is large.
    if last > min(len(data), first + MAX_DESCRIPTION):
        raise ValueError("the description of its array is truncated, or too long")
    dtype, shape = _described(bytes(data[first:last]))
    return view_of_bytes(data[last:], dtype, shape)


def _described(description: bytes) -> tuple[np.dtype, tuple[int, ...]]:
    """Return the element type and the shape in a `TensorDesc`; raises ValueError if it is damaged."""
    found = DESCRIPTION.fullmatch(description)
    if found is None or ord(found[1]) not in NUMBERS:
        raise ValueError("the description of its array is damaged, or the array is not one of numbers")
    sizes = [sum((byte & 0x7F) << 7 * i for i, byte in enumerate(size)) for size in SIZE.findall(found[2])]
    return TYPES[NUMBERS[ord(found[1])]], checked_sizes(sizes)


def write_paddle_variable(path: Path, array: np.ndarray) -> None:
    """Write an array as a file of one variable: numbers of 16 to 64 bits, bool and bytes.

    The folder is one that `atomic_folder` made.
    """
    number = next(number for number, name in NUMBERS.items() if name == array.dtype.name)
    description = TYPE_TAG + bytes([number]) + b"".join(SIZE_TAG + _encoded(size) for size in array.shape)
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
