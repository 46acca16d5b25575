"""Products of matrices on a CPU, in the threads of Paddle: of float32 factors, or of factors rounded to bfloat16.

A matrix that does not change is packed once: otherwise it is packed in each product, which takes as long as the product
of a few rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial

import numpy as np

from ernie_gram.distributed.device import on_cpu
from ernie_gram.distributed.processor import no_bfloat16
from ernie_gram.kernels import bfloat16_products, blas
from ernie_gram.kernels.custom_operations import empty
from reader.errors import InputError

# A product with a dimension up to this size is memory-bound: rounding or packing its factors takes longer.
SMALL = 32


def check_precision(precision: str) -> None:
    """Raise InputError if this device is a CPU without products of the precision."""
    if precision == "bfloat16" and on_cpu():
        reason = no_bfloat16() or ("" if bfloat16_products.is_available() else "this Paddle has no oneDNN")
        if reason:
            raise InputError(f"no products in bfloat16 on this CPU: {reason}; use float32")


# Sets its second argument, float32 [m, n], to the product of the first, a factor [m, k], and a packed matrix [k, n].
Packed = Callable[[np.ndarray, np.ndarray], None]

# By the addresses of the matrices.
_packed: ContextVar[Mapping[int, Packed] | None] = ContextVar("packed", default=None)


def pack(matrix: np.ndarray, rounds: bool) -> Packed | None:
    """Return a matrix, float32 [k, n], packed; None if it is small, or if the library cannot do it."""
    if min(matrix.shape) <= SMALL or not (rounds or blas.can_pack()):
        return None
    library = bfloat16_products if rounds else blas
    return partial(library.packed_product, library.pack(matrix))


@contextmanager
def using(packed: Mapping[int, Packed]) -> Iterator[None]:
    """Multiply by packed matrices in the context, given by the addresses of the matrices, which must not change."""
    token = _packed.set(packed)
    try:
        yield
    finally:
        _packed.reset(token)


def factor(matrix: np.ndarray, rounds: bool) -> np.ndarray:
    """Return a contiguous float32 matrix as a factor of `product`: itself, or rounded to bfloat16."""
    if not rounds:
        return matrix
    out = empty(matrix.shape, "bfloat16")
    bfloat16_products.round_numbers(matrix.reshape(-1), out.reshape(-1))
    return out


def weight(matrix: np.ndarray, rounds: bool) -> np.ndarray | Packed:
    """Return a matrix of weights as the second factor of `product`."""
    return (_packed.get() or {}).get(matrix.ctypes.data) or factor(matrix, rounds)


def product(x: np.ndarray, y: np.ndarray | Packed, out: np.ndarray, old: float = 0.0) -> None:
    """Set out, float32 [m, n], to x y + old out for factors x [m, k] and y [k, n].

    The rows of a factor, or of its transpose, are contiguous, and so are those of out.

    Args:
        old: 0 or 1; if it is 0, out need hold no numbers. It is 0 for a matrix that was packed.
    """
    if not isinstance(y, np.ndarray):
        y(x, out)
    elif x.dtype == np.float32:
        blas.add_product(x, y, out, old)
    else:
        bfloat16_products.add_product(x, y, out, old)
