"""Paddle's `.pdparams`: a pickled dict of names and numpy arrays, as `paddle.save` writes it.

Paddle adds two entries that are not parameters: names of variables, and, in protocols 2 and 3, how arrays of 1 GB and
more were cut into slices. Paddle has no type uint16; it stores the bits of bfloat16 as uint16.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import replace
from mmap import mmap
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ernie_gram.formats.untrusted.arrays import RawArray, RawArrays, check_name, checked_shape, one_line, quoted
from ernie_gram.formats.untrusted.pickle_machine import Machine
from ernie_gram.formats.untrusted.pickled_arrays import TYPE_CODES, PickledArray, array_globals
from reader.errors import InputError
from reader.system.atomic_files import atomic_file

VARIABLE_NAMES = "StructuredToParameterName@@"
SLICES = "UnpackBigParamInfor@@"


def read_pdparams(path: Path, data: mmap) -> RawArrays:
    """Return the arrays of a `.pdparams` file; entries that are no arrays are named in the notes.

    Raises InputError if the file refers to anything but arrays and plain containers, or is damaged.
    """
    try:
        value = Machine(array_globals(len(data))).load(data)
        if not isinstance(value, dict):
            raise ValueError(f"holds a {type(value).__name__}, not a dict of names and arrays")
        value.pop(VARIABLE_NAMES, None)
        slices = value.pop(SLICES, {})
        arrays = {name: array for name, entry in value.items() if (array := _array(entry)) is not None}
        notes = tuple(
            f"{path.name}: {quoted(name)} has type {type(entry).__name__}, it is not an array; left out"
            for name, entry in value.items()
            if name not in arrays
        )
        _join_slices(arrays, slices)
    except ValueError as error:
        raise InputError(f"{path}: {one_line(error)}") from error
    return RawArrays(arrays, notes)


def _array(entry: Any) -> RawArray | None:
    # Paddle 2.1 and later store a tensor, as opposed to a state dict of arrays, as (variable name, array).
    if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str):
        entry = entry[1]
    if not isinstance(entry, PickledArray) or entry.raw is None:
        return None
    return replace(entry.raw, stored_as="bfloat16") if entry.raw.stored_as == "uint16" else entry.raw


def _join_slices(arrays: dict[str, RawArray], slices: Any) -> None:
    """Replace the slices of large arrays by the arrays; raises ValueError unless each slice is used once."""
    if not isinstance(slices, dict):
        raise ValueError(f"{SLICES} is not a dict")
    for name, entry in slices.items():
        if not isinstance(entry, dict) or not isinstance(entry.get("slices"), list) or name in arrays:
            raise ValueError(f"{SLICES} of {quoted(name)} is damaged")
        parts = []
        for part in entry["slices"]:
            if not isinstance(part, str) or part not in arrays:
                raise ValueError(f"{quoted(name)}: the slice {quoted(part)} is missing or used twice")
            parts.append(arrays.pop(part))
        if len({part.stored_as for part in parts}) != 1:
            raise ValueError(f"{quoted(name)}: the slices are not of one type")
        joined = np.concatenate([part.values.reshape(-1) for part in parts])
        arrays[name] = RawArray(joined.reshape(checked_shape(entry.get("OriginShape"))), parts[0].stored_as)


def write_pdparams(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays atomically as a `.pdparams` file of protocol 4, which `paddle.load` of Paddle 2 and 3 reads.

    The operations are written here, because `pickle` of numpy 2 refers to `numpy._core`, which numpy before 1.26 does
    not have; `numpy.core.multiarray` is known to every version. Raises InputError if the file cannot be written, or for
    a type other than numbers and bool.
    """
    codes = {}
    for name, array in arrays.items():
        codes[check_name(name)] = code = array.dtype.newbyteorder("<").str.lstrip("<|")
        if code not in TYPE_CODES:
            raise InputError(f"{path}: not written, {name} is an array of {array.dtype}")
    with atomic_file(path) as partial, partial.open("wb") as file:
        file.write(b"\x80\x04}(")  # PROTO 4, EMPTY_DICT, MARK
        for name, array in arrays.items():
            file.write(_text(name))
            _write_array(file, array, codes[name])
        file.write(b"u.")  # SETITEMS, STOP


def _write_array(file: BinaryIO, array: np.ndarray, code: str) -> None:
    data = np.asarray(array, array.dtype.newbyteorder("<"), order="C")
    order = "|" if data.dtype.itemsize == 1 else "<"
    file.write(b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R")
    sizes = b"".join(b"\x8a\x08" + struct.pack("<q", size) for size in data.shape)  # LONG1 of 8 bytes each
    file.write(b"(K\x01(" + sizes + b"t")  # the state: version, shape
    file.write(b"cnumpy\ndtype\n" + _text(code) + b"\x89\x88\x87R")
    file.write(b"(K\x03" + _text(order) + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb")
    file.write(b"\x89\x8e" + struct.pack("<Q", data.nbytes))  # not Fortran order, BINBYTES8
    file.write(data.data if data.size else b"")
    file.write(b"tb")


def _text(text: str) -> bytes:
    data = text.encode()
    return b"X" + struct.pack("<I", len(data)) + data
