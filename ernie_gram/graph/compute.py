"""The precision of the products of the network that is being built, and casts to it.

Parameters, residual connections, LayerNorm and losses are float32; products, and what lies between two of them, are in
the precision of `computing`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import paddle


class _Casts:
    """Casts to one precision; each value is cast once, however many products read it."""

    def __init__(self, dtype: paddle.dtype) -> None:
        self.dtype = dtype
        # Value -> its cast, by the ID of the value. The value is kept, so that no other one gets its ID.
        self._made: dict[int, tuple[paddle.Tensor, paddle.Tensor]] = {}

    def of(self, x: paddle.Tensor) -> paddle.Tensor:
        if paddle.in_dynamic_mode():
            return x.astype(self.dtype)  # nothing is kept: there is no program that ends
        if x.id not in self._made:
            self._made[x.id] = x, x.astype(self.dtype)
        return self._made[x.id][1]


_current = [_Casts(paddle.float32)]


@contextmanager
def computing(precision: str) -> Iterator[None]:
    """Build a network whose products are computed in `precision`: "float32", "bfloat16" or "float16".

    The network must be built in one program, because casts are shared.
    """
    _current.append(_Casts(getattr(paddle, precision)))
    try:
        yield
    finally:
        _current.pop()


def for_product(x: paddle.Tensor) -> paddle.Tensor:
    """Return x in the precision of products."""
    casts = _current[-1]
    return x if x.dtype == casts.dtype else casts.of(x)


def cast(x: paddle.Tensor, dtype: paddle.dtype) -> paddle.Tensor:
    """Return x in another precision. Paddle's astype would copy x even if it has that precision already."""
    return x if x.dtype == dtype else x.astype(dtype)


def float32(x: paddle.Tensor) -> paddle.Tensor:
    """Return x in float32."""
    return cast(x, paddle.float32)
