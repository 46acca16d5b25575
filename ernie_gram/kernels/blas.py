"""Products of float32 matrices for compiled functions, by the library that Paddle brings (Intel's MKL), in one thread.

`is_available` must be called before a function that uses them.
"""

from __future__ import annotations

import ctypes
from functools import cache

import llvmlite.binding
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


# A matrix: the address of its first number, and the numbers from one row to the next.
Matrix = tuple[int, int]
Sizes = tuple[int, int, int]


@numba.njit(cache=True, nogil=True)
def product(sizes: Sizes, scale: float, a: Matrix, b: Matrix, c: Matrix) -> None:
    """C = scale A B for A [m, k], B [k, n] and C [m, n]; sizes = (m, n, k)."""
    (m, n, k), threads = sizes, _limit_threads(1)
    _sgemm(_BY_ROWS, _AS_IT_IS, _AS_IT_IS, m, n, k, scale, a[0], a[1], b[0], b[1], 0.0, c[0], c[1])
    _limit_threads(threads)


@numba.njit(cache=True, nogil=True)
def product_with_transposed(sizes: Sizes, scale: float, a: Matrix, b: Matrix, c: Matrix) -> None:
    """C = scale A B^T for A [m, k], B [n, k] and C [m, n]; sizes = (m, n, k)."""
    (m, n, k), threads = sizes, _limit_threads(1)
    _sgemm(_BY_ROWS, _AS_IT_IS, _TRANSPOSED, m, n, k, scale, a[0], a[1], b[0], b[1], 0.0, c[0], c[1])
    _limit_threads(threads)


@numba.njit(cache=True, nogil=True)
def transposed_product(sizes: Sizes, scale: float, a: Matrix, b: Matrix, old: float, c: Matrix) -> None:
    """C = scale A^T B + old C for A [k, m], B [k, n] and C [m, n]; sizes = (m, n, k)."""
    (m, n, k), threads = sizes, _limit_threads(1)
    _sgemm(_BY_ROWS, _TRANSPOSED, _AS_IT_IS, m, n, k, scale, a[0], a[1], b[0], b[1], old, c[0], c[1])
    _limit_threads(threads)
