"""Faster masks of dropout on a CPU.

There, Paddle's dropout (3.3.1) draws one float per number, in one thread: a fifth of a training step of the base model.
A program is therefore rewritten, after its backward pass has been added: a mask is made from 32-bit integers, each of
which decides over two numbers with 16 bits of its own. What the masks are applied to, and the bytes that are kept for
the backward pass, stay the same. A GPU draws its masks fast, and its programs are not rewritten.
"""

from __future__ import annotations

import paddle
from paddle.pir import Operation, Value

_DROPOUT = "pd_op.dropout"
_BITS = 16
_LEAST, _MOST = -(2**31), 2**31 - 1


def draw_masks_faster(program: paddle.static.Program) -> None:
    """Rewrite the dropout operations of a program for a CPU.

    A number is dropped with the probability round(65,536 p) / 65,536, which differs from p by less than 8e-6, and by
    less than 2e-5 where p is almost 1.
    """
    block = program.global_block()
    for operation in block.ops:
        if operation.name() == _DROPOUT:
            _rewrite(operation)
    paddle.pir.set_insertion_point_to_block_end(block)


def _rewrite(operation: Operation) -> None:
    (x, _, rate), (dropped, mask) = operation.operands_source(), operation.results()
    attributes = operation.attrs()
    paddle.pir.set_insertion_point(operation)
    drawn = _mask(x, rate.get_defining_op().attrs()["value"])
    # The gradient of dropout does to a gradient what dropout does to x, and takes the mask as an input.
    masked = paddle._C_ops.dropout_grad(drawn, x, rate, attributes["is_test"], attributes["mode"])
    dropped.replace_all_uses_with(masked)
    mask.replace_all_uses_with(drawn)
    operation.erase()


def _mask(x: Value, rate: float) -> Value:
    """Return 0 for numbers to drop and 1 for others, uint8, in the shape of x."""
    size = paddle.numel(x).reshape([1])
    # The upper bound is exclusive and must itself be an int32, so the highest integer is never drawn.
    upper = paddle._C_ops.randint(_LEAST, _MOST, (size + 1) // 2, paddle.int32, paddle.CPUPlace())
    # The lower 16 bits, in the place of the upper ones.
    lower = upper * 2**_BITS
    last_dropped = _LEAST + (min(round(rate * 2**_BITS), 2**_BITS - 1) << _BITS)
    kept = paddle._C_ops.concat([_is_greater(bits, last_dropped) for bits in (upper, lower)], 0)
    start = paddle._C_ops.full_int_array([0], paddle.int64, paddle.CPUPlace())
    return paddle._C_ops.slice(kept, [0], start, size, [-1], []).reshape(paddle.shape(x))


def _is_greater(x: Value, bound: int) -> Value:
    """Return 1 where x > bound and 0 elsewhere, uint8, for int32 numbers x and a bound that ends in a zero byte.

    x is clipped to the bound and its next number, and the conversion to uint8 keeps the last byte. That takes a fourth
    of the time of Paddle's comparison.
    """
    least, most = (paddle.full([1], number, "int32") for number in (bound, bound + 1))
    return paddle._C_ops.clip(x, least, most).astype("uint8")
