"""Paddle's `.pdparams`: a pickled dict of names and numpy arrays, as `paddle.save` writes it.

Paddle adds an entry that is no parameter, the names of variables. Paddle has no type uint16; it stores the bits of
bfloat16 as uint16.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np

from ernie_gram.formats.untrusted.arrays import BFLOAT16, StoredArrays
from ernie_gram.formats.untrusted.pickles import ArrayUnpickler, PickledArray, array_names
from reader.errors import InputError, quoted

VARIABLE_NAMES = "StructuredToParameterName@@"
SLICES = "UnpackBigParamInfor@@"


def read_pdparams(path: Path, data: mmap) -> StoredArrays:
    """Return the arrays of a `.pdparams` file; entries that are no arrays are named in the notes.

    Raises ValueError if the file refers to anything but arrays and plain containers, or is damaged.
    """
    entries = ArrayUnpickler(data, array_names()).load()
    if not isinstance(entries, dict):
        raise ValueError(f"holds a {type(entries).__name__}, not a dict of names and arrays")
    if SLICES in entries:
        raise ValueError("holds arrays of 1 GB and more in slices; save it again with paddle.save(..., protocol=4)")
    entries.pop(VARIABLE_NAMES, None)
    arrays, notes = {}, []
    for name, entry in entries.items():
        # Paddle 2.1 and later store a tensor, as opposed to a state dict of arrays, as (variable name, array).
        array = entry[1] if isinstance(entry, tuple) and len(entry) == 2 else entry
        if isinstance(array, PickledArray) and array.values is not None:
            values = array.values
            arrays[name] = values.view(BFLOAT16) if values.dtype == np.uint16 else values
        else:
            kind = type(entry).__name__
            notes.append(f"{path.name}: {quoted(name)} has type {kind}, it is not an array; left out")
    return StoredArrays(arrays, tuple(notes))


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

    The folder is one that `atomic_folder` made. Raises InputError for a type other than numbers and bool.
    """
    for name, array in arrays.items():
        if array.dtype.kind not in "fiub":
            raise InputError(f"{path}: not written, {name} is an array of {array.dtype}")
    with path.open("wb") as file:
        pickler = _ArrayPickler(file, 4)
        pickler.fast = True  # does not hold the bytes of all arrays until the end
        pickler.dump(
            {name: np.asarray(array, array.dtype.newbyteorder("<"), order="C") for name, array in arrays.items()}
        )
