"""Paddle's two modes, for code that other programs call: each context ends in the mode that the caller was in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import paddle
from paddle.base import framework


@contextmanager
def dynamic_mode() -> Iterator[None]:
    """Compute in dynamic mode in the context."""
    if paddle.in_dynamic_mode():
        yield
    else:
        with paddle.base.dygraph.guard():
            yield


@contextmanager
def static_mode(scope: paddle.static.Scope) -> Iterator[None]:
    """Build and run static programs in the context, whose variables are in `scope`.

    The caller's tracer comes back as it was, so gradients that he is recording are not lost, as they would be with
    enable_static and disable_static.
    """
    with framework._dygraph_guard(None), paddle.static.scope_guard(scope):
        yield


@contextmanager
def unchanged_random_state() -> Iterator[None]:
    """Give Paddle's random numbers back to the caller where he left them."""
    # A seed is also one of the CPU's numbers. On a GPU, those of the other GPUs are not restored.
    devices = ("cpu", None)
    states = [paddle.get_rng_state(device) for device in devices]
    try:
        yield
    finally:
        for device, state in zip(devices, states, strict=True):
            paddle.set_rng_state(state, device)
