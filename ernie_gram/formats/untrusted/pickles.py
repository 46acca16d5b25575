"""Pickles of arrays and plain containers, read so that nothing of a file is run: `.pdparams`, and those of PyTorch.

A `.pdparams` file is a pickled dict of names and numpy arrays, as `paddle.save` writes it. Paddle adds an entry that is
no array, the names of variables.

The interpreter is Python's own, the one that is written in Python; the one in C allocates memory for sizes that a file
merely claims. Only the operations that arrays need are left in it. What a pickle refers to by name is looked up among
functions of ours that make inert records; every other name is refused. These functions are the only values on the stack
that can be called, and only arrays, types and dicts accept a state. The interpreter is not recursive, so deep
nesting is harmless.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from mmap import mmap
from typing import Any

import numpy as np

from ernie_gram.formats.untrusted.arrays import BFLOAT16, TYPES, view_of_bytes
from ernie_gram.run.checkpoint import Arrays
from reader.errors import quoted

SLICES = "UnpackBigParamInfor@@"
# An array takes about 40 operations, an operation of one byte up to 64 bytes of memory.
MAX_OPERATIONS = 2_000_000
ALLOWED = (
    *("PROTO", "FRAME", "STOP", "MARK", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1"),
    *("BINFLOAT", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "EMPTY_LIST", "APPEND", "APPENDS", "SETITEM", "SETITEMS"),
    *("EMPTY_TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "TUPLE", "BINPUT", "LONG_BINPUT", "MEMOIZE", "BINGET"),
    *("LONG_BINGET", "GLOBAL", "STACK_GLOBAL", "BINPERSID"),
)
# The types of numpy arrays by their code, without the byte order.
CODES = {dtype.str[1:]: dtype for dtype in TYPES.values() if dtype != BFLOAT16}


class Entries(dict[str, Any]):
    """A dict of a pickle, whose keys must be text: the hash of a nested tuple can take exponential time."""

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(key, str):
            raise ValueError(f"a key has type {type(key).__name__}, it is not text")
        super().__setitem__(key, value)

    def __repr__(self) -> str:
        return "{...}"  # in full, it may be endless


@dataclass
class PickledArray:
    """A numpy array, whose values are None until its state was set."""

    values: np.ndarray | None = None


class _Operations(dict[int, Any]):
    """The operations by code, counted as they are looked up."""

    count = 0

    def __getitem__(self, code: int) -> Any:
        self.count += 1
        if self.count > MAX_OPERATIONS:
            raise ValueError(f"has more than {MAX_OPERATIONS:,} operations; this is not a file of arrays")
        return super().__getitem__(code)

    def __missing__(self, code: int) -> Any:
        raise ValueError(f"the operation {bytes([code])!r} is not needed for arrays and is not done")


class ArrayUnpickler(pickle._Unpickler):
    """Reads the pickle at the current position of a file, and leaves the position after it.

    Args:
        names: "module.name" -> what is used in its place, beside the names of numpy; everything else is refused.
        resolve: maps a persistent ID (PyTorch's reference to a storage) to a record; None refuses persistent IDs.
    """

    stack: list[Any]

    def __init__(
        self,
        file: BytesIO | mmap,
        names: Mapping[str, Any] | None = None,
        resolve: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(file)
        self.names = {**NAMES, "_codecs.encode": _encoder(), **(names or {})}
        self.resolve = resolve
        self.dispatch = _Operations(OPERATIONS)  # type: ignore[misc]

    def arrays(self) -> Arrays:
        """Return the arrays of a dict, without entries that are no arrays.

        Raises ValueError for a pickle of anything but arrays and plain containers, and one of reading.DAMAGED for a
        damaged one.
        """
        entries = self.load()
        if not isinstance(entries, dict):
            raise ValueError(f"holds a {type(entries).__name__}, not a dict of names and arrays")
        if SLICES in entries:
            raise ValueError("holds arrays of 1 GB and more in slices; save it again with paddle.save(..., protocol=4)")
        found = {}
        for name, entry in entries.items():
            # Paddle 2.1 and later store a tensor, as opposed to a state dict of arrays, as (variable name, array).
            array = entry[1] if isinstance(entry, tuple) and len(entry) == 2 else entry
            values = array.values if isinstance(array, PickledArray) else array
            if isinstance(values, np.ndarray):
                # Paddle has no type uint16, and stores the bits of bfloat16 so.
                found[name] = values.view(BFLOAT16) if values.dtype == np.uint16 else values
        return found

    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in of a name; raises ValueError for other names."""
        full = f"{MODULES.get(module, module)}.{name}"
        if full not in self.names:
            raise ValueError(f"refers to {quoted(full)}, which is not part of an array; nothing was run")
        return self.names[full]

    def persistent_load(self, reference: Any) -> Any:
        """Return the record for a persistent ID; raises ValueError in formats without them."""
        if self.resolve is None:
            raise ValueError("refers to data outside of the pickle, which this format does not have")
        return self.resolve(reference)

    def load_entries(self) -> None:
        """Operation EMPTY_DICT."""
        self.stack.append(Entries())

    def load_call(self) -> None:
        """Operation REDUCE."""
        arguments, function = self.stack.pop(), self.stack.pop()
        if not isinstance(arguments, tuple):  # each character of a long text would be an object
            raise ValueError("the arguments of a call are not a tuple")
        self.stack.append(function(*arguments))

    def load_state(self) -> None:
        """Operation BUILD."""
        state, target = self.stack.pop(), self.stack[-1]
        match target, state:
            case PickledArray(), (_version, shape, kind, is_fortran, data):
                target.values = _filled(data, kind, shape, "F" if is_fortran else "C")
            case np.dtype(), (_version, "<" | "|" | "=", None, None, None, *_):
                pass  # little-endian, and no record
            case Entries(), _:
                pass  # attributes of an OrderedDict: `_metadata`, the version of each layer
            case _:
                raise ValueError(f"sets a state that a value of type {type(target).__name__} cannot have")


_inherited = {name: pickle._Unpickler.dispatch[getattr(pickle, name)[0]] for name in ALLOWED}
OPERATIONS: dict[int, Any] = {getattr(pickle, name)[0]: operation for name, operation in _inherited.items()} | {
    pickle.EMPTY_DICT[0]: ArrayUnpickler.load_entries,
    pickle.REDUCE[0]: ArrayUnpickler.load_call,
    pickle.BUILD[0]: ArrayUnpickler.load_state,
    # Python would fill an array of the claimed size with zeros before it reads.
    pickle.BYTEARRAY8[0]: _inherited["BINBYTES8"],
}


def _filled(data: Any, kind: Any, shape: Any, order: Any = "C") -> np.ndarray:
    """Return bytes as an array; raises ValueError unless type and shape fit them."""
    if not isinstance(kind, np.dtype):
        raise ValueError("an array without a type")
    if not isinstance(data, bytes):
        raise ValueError("arrays of Python objects are not read")
    return view_of_bytes(data, kind, shape, "F" if order == "F" else "C")


def _encoder() -> Callable[[Any, Any], bytes]:
    # A small file could ask for the bytes of one long text again and again.
    latin1 = cache(lambda text: text.encode("latin1"))

    def encode(text: Any, encoding: Any) -> bytes:
        if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
            raise ValueError("the only text encoding of arrays is latin1")
        return latin1(text)

    return encode


def _type(code: Any, align: Any = False, copy: Any = True) -> np.dtype:
    dtype = CODES.get(code.lstrip("<|=")) if isinstance(code, str) else None
    if dtype is None:
        raise ValueError(f"arrays of type {quoted(code)} are not read")
    return dtype


# The names of modules since numpy 2, and up to protocol 2 -> those in NAMES.
MODULES = {
    "numpy._core.multiarray": "numpy.core.multiarray",
    "numpy._core.numeric": "numpy.core.numeric",
    "__builtin__": "builtins",
}
# The names that a pickle of numpy arrays in plain containers may refer to, and `_codecs.encode`.
NAMES: dict[str, Any] = {
    "numpy.ndarray": None,  # only mentioned
    "numpy.dtype": _type,
    "numpy.core.multiarray._reconstruct": lambda kind, shape, code: PickledArray(),
    "numpy.core.multiarray.scalar": lambda kind, data: _filled(data, kind, ()),
    "numpy.core.numeric._frombuffer": _filled,
    "collections.OrderedDict": lambda: Entries(),
    "builtins.bytes": lambda: b"",
    "builtins.tuple": lambda values: values,
}
