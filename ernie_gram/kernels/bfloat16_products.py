"""Products of rows by matrices that were rounded to bfloat16 and packed once, by oneDNN as Paddle brings it.

Paddle's own operation packs the matrix in each product, which takes as long as the product of a few rows. Names and
numbers are those of oneDNN's interface for C, version 3.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ernie_gram.distributed.processor import library_of_paddle
from ernie_gram.kernels.blas import memory_of_packed

_CPU, _IN_ORDER = 1, 1
_BFLOAT16, _FLOAT32 = 2, 3
# The order of the numbers of a matrix: the best one for a product, or by rows.
_BEST, _BY_ROWS = 1, 3
_WEIGHTS_OF = 131
# What an operation reads and writes.
_SOURCE, _TARGET, _WEIGHTS = 1, 17, 33
# The number of rows for which a matrix is packed; products of other numbers of rows take the same order.
_ROWS = 256
# Of each thread: operations by the sizes of their matrices, at most this number, and memory for rounded rows.
_kept = threading.local()
_MOST = 512


class _Object(ctypes.c_void_p):
    """An object of oneDNN, which is destroyed with this one."""


class _Argument(ctypes.Structure):
    _fields_ = (("number", ctypes.c_int), ("memory", ctypes.c_void_p))


@cache
def _library() -> ctypes.CDLL:
    library = library_of_paddle("libdnnl.so.3")
    library.dnnl_memory_desc_get_size.restype = ctypes.c_size_t
    library.dnnl_primitive_desc_query_md.restype = ctypes.c_void_p
    return library


@cache
def is_available() -> bool:
    """Return whether Paddle, which must be loaded, brings the library."""
    try:
        return hasattr(_library(), "dnnl_matmul_primitive_desc_create")
    except OSError:
        return False


def _checked(name: str, *arguments: Any) -> None:
    if status := getattr(_library(), f"dnnl_{name}")(*arguments):
        raise RuntimeError(f"oneDNN: {name} returned {status}")


def _made(kind: str, name: str, *arguments: Any) -> _Object:
    made = _Object()
    _checked(name, ctypes.byref(made), *arguments)
    destroy = getattr(_library(), f"dnnl_{kind}_destroy")
    weakref.finalize(made, destroy, ctypes.c_void_p(made.value)).atexit = False
    return made


@cache
def _engine() -> _Object:
    return _made("engine", "engine_create", _CPU, ctypes.c_size_t(0))


def _layout(shape: Sequence[int], dtype: int, order: int = _BY_ROWS) -> _Object:
    sizes = (ctypes.c_int64 * len(shape))(*shape)
    return _made("memory_desc", "memory_desc_create_with_tag", len(shape), sizes, dtype, order)


def _product_of(m: int, k: int, n: int, weights: ctypes.c_void_p) -> _Object:
    layouts = _layout((m, k), _BFLOAT16), weights, None, _layout((m, n), _FLOAT32)
    return _made("primitive_desc", "matmul_primitive_desc_create", _engine(), *layouts, None)


@cache
def _packed_layout(k: int, n: int) -> tuple[ctypes.c_void_p, _Object]:
    """Return the layout of a packed matrix, and what it is a part of."""
    product = _product_of(_ROWS, k, n, _layout((k, n), _BFLOAT16, _BEST))
    return ctypes.c_void_p(_library().dnnl_primitive_desc_query_md(product, _WEIGHTS_OF, 0)), product


class _Operation:
    """An operation of oneDNN; it is used by the thread that made it, which has memory for it."""

    def __init__(self, description: _Object, layouts: dict[int, ctypes.c_void_p]) -> None:
        """Take the layout of each argument by its number."""
        self._operation = _made("primitive", "primitive_create", description)
        self._stream = _made("stream", "stream_create", _engine(), _IN_ORDER)
        self._memories = [_made("memory", "memory_create", layout, _engine(), None) for layout in layouts.values()]
        pairs = zip(layouts, self._memories, strict=True)
        self._arguments = (_Argument * len(layouts))(*(_Argument(number, memory) for number, memory in pairs))

    def __call__(self, *arrays: np.ndarray) -> None:
        """Compute with arrays in the order of the layouts."""
        for memory, array in zip(self._memories, arrays, strict=True):
            _checked("memory_set_data_handle", memory, ctypes.c_void_p(array.ctypes.data))
        _checked("primitive_execute", self._operation, self._stream, len(arrays), self._arguments)


def _rounding(shape: Sequence[int], target: ctypes.c_void_p) -> _Operation:
    given = _layout(shape, _FLOAT32)
    layouts = (given, _engine(), target, _engine())
    description = _made("primitive_desc", "reorder_primitive_desc_create", *layouts, None)
    return _Operation(description, {_SOURCE: given, _TARGET: target})


def pack(matrix: np.ndarray) -> np.ndarray:
    """Return a matrix, float32 [k, n], rounded and in the order in which oneDNN multiplies by it."""
    layout, _ = _packed_layout(*matrix.shape)
    packed = memory_of_packed(_library().dnnl_memory_desc_get_size(layout), matrix.nbytes // 2)
    _rounding(matrix.shape, layout)(matrix, packed)
    return packed


def packed_product(rows: np.ndarray, packed: np.ndarray, out: np.ndarray) -> None:
    """Set out, float32 [m, n], to the product of rows [m, k], rounded, and a packed matrix [k, n]."""
    (m, k), n = rows.shape, out.shape[1]
    kept: dict[tuple[int, int, int], tuple[_Operation, _Operation]] = _kept.__dict__.setdefault("operations", {})
    if (m, k, n) not in kept:
        if len(kept) == _MOST:
            kept.clear()
        layout, _ = _packed_layout(k, n)
        rounded = _layout((m, k), _BFLOAT16)
        layouts = {_SOURCE: rounded, _WEIGHTS: layout, _TARGET: _layout((m, n), _FLOAT32)}
        kept[m, k, n] = _rounding((m, k), rounded), _Operation(_product_of(m, k, n, layout), layouts)
    memory = _kept.__dict__.setdefault("rounded", np.empty(0, np.uint16))
    if memory.size < rows.size:
        memory = _kept.rounded = np.empty(rows.size, np.uint16)
    rounding, product = kept[m, k, n]
    rounding(rows, memory)
    product(memory, packed, out)
