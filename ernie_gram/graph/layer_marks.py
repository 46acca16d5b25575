"""Marks on the operations of an encoder layer, which tell `training.recompute` what to compute again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import paddle

# Integer attribute of marked operations: the layer that they belong to.
LAYER = "recompute_layer"


@contextmanager
def marked_layer() -> Iterator[None]:
    """Mark the operations that are added to the program in this context as one layer; in dynamic mode, do nothing.

    They must not draw random numbers, except for dropout.
    """
    if paddle.in_dynamic_mode():
        yield
        return
    block = paddle.static.default_main_program().global_block()
    first = len(block.ops)
    yield
    for operation in block.ops[first:]:
        operation.set_int_attr(LAYER, first)
