"""Products of float32 matrices by the library that Paddle brings (Intel's MKL): for compiled functions, in one thread;
and by matrices that were packed once.

`is_available` must be called before a function that uses them.
"""

from __future__ import annotations

import ctypes
import mmap
from contextlib import suppress
from functools import cache
from typing import Any

import llvmlite.binding
import numpy as np
from numba import types

from ernie_gram.distributed.processor import mkl
from reader.system.compiled import numba

# Names of the library's functions in compiled code, which may be read from a cache.
_SGEMM, _LIMIT = "ernie_gram_sgemm", "ernie_gram_limit_threads"
_int, _float, _address = types.int32, types.float32, types.uintp
_sgemm = types.ExternalFunction(
    _SGEMM,
    types.void(*[_int] * 6, _float, _address, _int, _address, _int, _float, _address, _int),
)
# Sets how many threads the library uses for this thread, 0 for as many as for others; returns the number before.
_limit_threads = types.ExternalFunction(_LIMIT, _int(_int))
# Of CBLAS.
_BY_ROWS, _AS_IT_IS, _TRANSPOSED = 101, 111, 112


@cache
def is_available() -> bool:
    """Return whether Paddle brings the library; then compiled functions find it."""
    import paddle  # noqa: F401  it loads what the library needs

    try:
        library = mkl()
        functions = {_SGEMM: library.cblas_sgemm, _LIMIT: library.MKL_Set_Num_Threads_Local}
    except (OSError, AttributeError):
        return False
    for name, function in functions.items():
        llvmlite.binding.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)
    return True


# The library's names for the second factor, and for one that is packed.
_SECOND, _PACKED = 162, 151
# The number of rows of the other factor for which matrices are packed.
_ROWS = 256
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


@cache
def can_pack() -> bool:
    """Return whether `packed_product` multiplies any number of rows.

    The library's manual promises it only for as many rows as the matrix was packed for, so it is tried.
    """
    if not is_available() or not hasattr(mkl(), "cblas_sgemm_pack_get_size"):
        return False
    random = np.random.default_rng(0)
    matrix = random.standard_normal((96, 160)).astype(np.float32)
    packed, differences = pack(matrix), []
    for count in (1, 7, _ROWS, 500):
        rows, found = random.standard_normal((count, 96)).astype(np.float32), np.empty((count, 160), np.float32)
        packed_product(packed, rows, found)
        differences.append(np.abs(found - rows @ matrix).max())
    return bool(max(differences) < 1e-3)


def pack(matrix: np.ndarray) -> np.ndarray:
    """Return a matrix, float32 [k, n], in the order in which the library multiplies by it; it must not be moved."""
    (k, n), library = matrix.shape, mkl()
    library.cblas_sgemm_pack_get_size.restype = ctypes.c_size_t
    packed = memory_of_packed(library.cblas_sgemm_pack_get_size(_SECOND, _ROWS, n, k), matrix.nbytes)
    sizes = (_ROWS, n, k)
    given, target = ctypes.c_void_p(matrix.ctypes.data), ctypes.c_void_p(packed.ctypes.data)
    library.cblas_sgemm_pack(_BY_ROWS, _SECOND, _AS_IT_IS, *sizes, ctypes.c_float(1.0), given, n, target)
    return packed


def memory_of_packed(most: int, size: int) -> np.ndarray:
    """Return memory of its own, float32, for a packed matrix of at most `most` bytes, of which `size` are used."""
    # What is not written takes no memory, unless it was used before.
    memory = mmap.mmap(-1, most, _PRIVATE)
    with suppress(AttributeError, OSError):  # addresses within large pages, if the system has them, are found faster
        memory.madvise(mmap.MADV_HUGEPAGE, 0, size // mmap.PAGESIZE * mmap.PAGESIZE)
    return np.frombuffer(memory, np.uint8)[: most // 4 * 4].view(np.float32)


def packed_product(packed: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """Set out, float32 [m, n], to the product of rows [m, k] and a packed matrix [k, n], in the threads of Paddle."""
    (m, k), n = rows.shape, out.shape[1]
    a, b, c = (ctypes.c_void_p(each.ctypes.data) for each in (rows, packed, out))
    row = out.strides[0] // out.itemsize
    mkl().cblas_sgemm_compute(_BY_ROWS, _AS_IT_IS, _PACKED, m, n, k, a, k, b, n, ctypes.c_float(0.0), c, row)


def add_product(a: np.ndarray, b: np.ndarray, out: np.ndarray, old: float) -> None:
    """Set out, float32 [m, n], to a b + old out for float32 a [m, k] and b [k, n], in the threads of Paddle.

    Each is a matrix whose rows are contiguous, or the transpose of one. If `old` is 0, out need hold no numbers.
    """
    (m, n), k = out.shape, a.shape[1]
    forms: list[int] = []
    places: list[Any] = []
    for factor in (a, b):
        is_transposed = factor.strides[1] != factor.itemsize
        forms.append(_TRANSPOSED if is_transposed else _AS_IT_IS)
        places += [ctypes.c_void_p(factor.ctypes.data), factor.strides[1 if is_transposed else 0] // factor.itemsize]
    result = (ctypes.c_float(old), ctypes.c_void_p(out.ctypes.data), out.strides[0] // out.itemsize)
    mkl().cblas_sgemm(_BY_ROWS, *forms, m, n, k, ctypes.c_float(1.0), *places, *result)


# A matrix: the address of its first number, and the numbers from one row to the next.
Matrix = tuple[int, int]
Sizes = tuple[int, int, int]
# How the factors of a product are stored: as they are, or one of them as its transpose.
Forms = tuple[int, int]
PLAIN, FIRST_TRANSPOSED, SECOND_TRANSPOSED = (
    (_AS_IT_IS, _AS_IT_IS),
    (_TRANSPOSED, _AS_IT_IS),
    (_AS_IT_IS, _TRANSPOSED),
)


@numba.njit(cache=True, nogil=True)
def product(forms: Forms, sizes: Sizes, scale: float, a: Matrix, b: Matrix, old: float, c: Matrix) -> None:
    """C = scale A B + old C for A [m, k], B [k, n] and C [m, n], in one thread; sizes = (m, n, k)."""
    (m, n, k), threads = sizes, _limit_threads(1)
    _sgemm(_BY_ROWS, forms[0], forms[1], m, n, k, scale, a[0], a[1], b[0], b[1], old, c[0], c[1])
    _limit_threads(threads)
