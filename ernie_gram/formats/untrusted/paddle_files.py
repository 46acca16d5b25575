"""Paddle's files of one variable, as in `params/` of upstream's static models.

They have (paddle/fluid/framework/lod_tensor.cc and framework.proto; integers are little-endian):

    uint32 0 (version), uint64 0 (levels of detail: a parameter has none), uint32 0 (version),
    int32 size of the description, the description, the elements

The description is the protocol buffer `TensorDesc`: field 1 is the element type, field 2 the sizes of the dimensions.
"""

from __future__ import annotations

import re

import numpy as np

from ernie_gram.formats.untrusted.arrays import TYPES, checked_sizes, view_of_bytes

# Values of VarType.Type in framework.proto.
NUMBERS = {
    **dict(enumerate(("bool", "int16", "int32", "int64", "float16", "float32", "float64"))),
    **dict(enumerate(("uint8", "int8", "bfloat16"), start=20)),
}

START = bytes(16)
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
