"""Products of factors that were rounded to bfloat16, by oneDNN as Paddle brings it; sums are float32.

Names and numbers are those of oneDNN's interface for C, version 3.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from threading import get_ident
from typing import Any

import numpy as np

from ernie_gram.distributed.processor import library_of_paddle
from ernie_gram.kernels.blas import memory_of_packed

_CPU, _IN_ORDER = 1, 1
_BFLOAT16, _FLOAT32 = 2, 3
# The order of the numbers of a matrix that is the best one for a product.
_BEST = 1
_WEIGHTS_OF = 131
# What an operation reads and writes.
_SOURCE, _TARGET, _WEIGHTS = 1, 17, 33
# The number of rows for which a matrix is packed; products of other numbers of rows take the same order.
_ROWS = 256

Sizes = tuple[int, int]
# The shape of a matrix, and the numbers from one row to the next, and from one column to the next.
Form = tuple[Sizes, Sizes]


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


def _layout(shape: Sizes, dtype: int, strides: Sizes | None = None) -> _Object:
    """Return the layout of a matrix with the numbers from one row to the next, and from one column to the next."""
    numbers = ((ctypes.c_int64 * 2)(*shape), dtype, (ctypes.c_int64 * 2)(*(strides or (shape[1], 1))))
    return _made("memory_desc", "memory_desc_create_with_strides", 2, *numbers)


def _product_of(x: _Object, weights: ctypes.c_void_p, out: _Object, adds: bool = False) -> _Object:
    attributes = None
    if adds:
        operations, attributes = _made("post_ops", "post_ops_create"), _made("primitive_attr", "primitive_attr_create")
        _checked("post_ops_append_sum", operations, ctypes.c_float(1.0), 0, 0)
        _checked("primitive_attr_set_post_ops", attributes, operations)
    return _made("primitive_desc", "matmul_primitive_desc_create", _engine(), x, weights, None, out, attributes)


@cache
def _packed_layout(k: int, n: int) -> tuple[ctypes.c_void_p, _Object]:
    """Return the layout of a packed matrix, and what it is a part of."""
    best = _made("memory_desc", "memory_desc_create_with_tag", 2, (ctypes.c_int64 * 2)(k, n), _BFLOAT16, _BEST)
    product = _product_of(_layout((_ROWS, k), _BFLOAT16), best, _layout((_ROWS, n), _FLOAT32))
    return ctypes.c_void_p(_library().dnnl_primitive_desc_query_md(product, _WEIGHTS_OF, 0)), product


class _Operation:
    """An operation of oneDNN; it is used by the thread that made it, which has memory for it."""

    def __init__(self, description: _Object, layouts: Mapping[int, ctypes.c_void_p]) -> None:
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


def _rounding(shape: tuple[int, int], target: ctypes.c_void_p) -> _Operation:
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


def round_numbers(numbers: np.ndarray, out: np.ndarray) -> None:
    """Set bits of bfloat16, uint16 [n], to float32 numbers [n], rounded to nearest even."""
    if numbers.size:
        _operation(get_ident(), _made_rounding, numbers.size)(numbers, out)


def add_product(x: np.ndarray, y: np.ndarray, out: np.ndarray, old: float) -> None:
    """Set out, float32 [m, n], to x y + old out for bits of bfloat16, x [m, k] and y [k, n]; old is 0 or 1."""
    if x.size and y.size:
        forms = ((each.shape, tuple(stride // each.itemsize for stride in each.strides)) for each in (x, y, out))
        _operation(get_ident(), _made_product, *forms, bool(old))(x, y, out)
    elif not old:
        out.fill(0)


def packed_product(packed: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    """Set out, float32 [m, n], to the product of bits of bfloat16, x [m, k], and a packed matrix [k, n]."""
    multiply = _operation(get_ident(), _made_packed_product, *x.shape, out.shape[1], out.strides[0] // out.itemsize)
    multiply(x, packed, out)


@lru_cache(4096)
def _operation(thread: int, make: Callable[..., _Operation], *numbers: object) -> _Operation:
    """Return make(*numbers), which the thread of this number may have made before."""
    return make(*numbers)


def _made_rounding(size: int) -> _Operation:
    return _rounding((1, size), _layout((1, size), _BFLOAT16))


def _made_product(x: Form, y: Form, out: Form, adds: bool) -> _Operation:
    first, second, target = (
        _layout(shape, dtype, strides)
        for (shape, strides), dtype in zip((x, y, out), (_BFLOAT16, _BFLOAT16, _FLOAT32), strict=True)
    )
    layouts = {_SOURCE: first, _WEIGHTS: second, _TARGET: target}
    return _Operation(_product_of(first, second, target, adds), layouts)


def _made_packed_product(m: int, k: int, n: int, row: int) -> _Operation:
    (packed, _), x, out = _packed_layout(k, n), _layout((m, k), _BFLOAT16), _layout((m, n), _FLOAT32, (row, 1))
    return _Operation(_product_of(x, packed, out), {_SOURCE: x, _WEIGHTS: packed, _TARGET: out})
