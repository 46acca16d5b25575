"""Tools of the model and the training for the program that is being built: precision, clean-up, layers and modes.

Parameters, residual connections, LayerNorm and losses are float32; products, and what lies between two of them, are in
the precision of `computing`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import paddle

from ernie_gram.distributed.device import on_cpu
from ernie_gram.kernels import blas
from ernie_gram.paddle_private import RUN_IN_ORDER, dynamic_guard, static_guard


class _Casts:
    """Casts to one precision; each value is cast once, however many products read it."""

    def __init__(self, dtype: paddle.dtype) -> None:
        self.dtype = dtype
        # Value -> its cast, by the ID of the value. The value is kept, so that no other one gets its ID.
        self._made: dict[int, tuple[paddle.Tensor, paddle.Tensor]] = {}

    def of(self, x: paddle.Tensor) -> paddle.Tensor:
        if paddle.in_dynamic_mode():
            return x.astype(self.dtype)  # not kept: it would never be freed
        if x.id not in self._made:
            self._made[x.id] = x, x.astype(self.dtype)
        return self._made[x.id][1]


class _Network(NamedTuple):
    """The network that is being built: its casts, and the arguments of `computing`."""

    casts: _Casts
    precision: str = "float32"
    fuses: bool = False
    recomputes: bool = False


_current = [_Network(_Casts(paddle.float32))]


@contextmanager
def computing(precision: str, fuses: bool = False, recomputes: bool = False) -> Iterator[None]:
    """Build a network whose products are computed in `precision`: "float32", "bfloat16" or "float16".

    The network must be built in one program, because casts are shared. On a CPU it is built in float32: there, only
    encoder layers that are one operation round the factors of their products.

    Args:
        fuses: whether this project's operations for a CPU are used: an encoder layer is one, and so is the softmax over
            the classes.
        recomputes: whether the backward pass of an encoder layer that is one operation computes it again.
    """
    dtype = paddle.float32 if on_cpu() else getattr(paddle, precision)
    _current.append(_Network(_Casts(dtype), precision, fuses, recomputes))
    try:
        yield
    finally:
        _current.pop()


def network() -> _Network:
    """Return what is known of the network that is being built."""
    return _current[-1]


def can_fuse() -> bool:
    """Return whether programs may use this project's operations for a CPU."""
    return on_cpu() and blas.is_available()


def fuses() -> bool:
    """Return whether the network that is being built is to use this project's operations for a CPU."""
    return _current[-1].fuses and not paddle.in_dynamic_mode()


def for_product(x: paddle.Tensor) -> paddle.Tensor:
    """Return x in the precision of products."""
    casts = _current[-1].casts
    return x if x.dtype == casts.dtype else casts.of(x)


def cast(x: paddle.Tensor, dtype: paddle.dtype) -> paddle.Tensor:
    """Return x in another precision. Paddle's astype would copy x even if it has that precision already."""
    return x if x.dtype == dtype else x.astype(dtype)


def float32(x: paddle.Tensor) -> paddle.Tensor:
    """Return x in float32."""
    return cast(x, paddle.float32)


def up_to_multiple(size: paddle.Tensor, divisor: int) -> paddle.Tensor:
    """Return the smallest number that makes a size a multiple of `divisor` when added; both are int64 on the host.

    A size that was computed on a GPU would be copied from there, and the host would wait for it.
    """
    number = paddle.full([], divisor, "int64", device=paddle.CPUPlace())
    return (number - size % number) % number


# Integer attribute of marked operations: the layer that they belong to.
LAYER = "recompute_layer"


class MarkedLayer:
    """Marks the operations that are added to the program in its context as one layer; in dynamic mode, does nothing.

    The operations must not draw random numbers, except for dropout. No generator: `paddle.jit` cannot convert those.
    """

    def __enter__(self) -> None:
        self.block = None if paddle.in_dynamic_mode() else paddle.static.default_main_program().global_block()
        self.first = len(self.block.ops) if self.block else 0

    def __exit__(self, *error: object) -> None:
        for operation in self.block.ops[self.first :] if self.block else ():
            operation.set_int_attr(LAYER, self.first)


@contextmanager
def dynamic_mode() -> Iterator[None]:
    """Compute in dynamic mode in the context."""
    if paddle.in_dynamic_mode():
        yield
    else:
        with dynamic_guard():
            yield


@contextmanager
def static_mode(scope: paddle.static.Scope) -> Iterator[None]:
    """Build and run static programs in the context, whose variables are in `scope`.

    The caller's tracer is restored, so that the gradients that it is recording are not lost, as they would be with
    enable_static and disable_static.
    """
    flags = paddle.get_flags(list(RUN_IN_ORDER))
    paddle.set_flags(RUN_IN_ORDER)
    try:
        with static_guard(), paddle.static.scope_guard(scope):
            yield
    finally:
        paddle.set_flags(flags)


@contextmanager
def unchanged_random_state() -> Iterator[None]:
    """Restore the state of Paddle's random numbers at the end of the context."""
    # paddle.seed also changes the state of the CPU. The states of GPUs other than the current one are not restored.
    devices = ("cpu", None)
    states = [paddle.get_rng_state(device) for device in devices]
    try:
        yield
    finally:
        for device, state in zip(devices, states, strict=True):
            paddle.set_rng_state(state, device)
