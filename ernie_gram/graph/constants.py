"""Constants of a program that lie on the host."""

from __future__ import annotations

import paddle
from paddle.pir import Value

_CONSTANTS = ("pd_op.full", "pd_op.full_int_array")


def up_to_multiple(size: paddle.Tensor, divisor: int) -> paddle.Tensor:
    """Return the smallest number that makes a size, int64 on the host, a multiple of `divisor`; it is on the host too.

    A size that was computed on a GPU would be copied from there, for which the host waits.
    """
    number = paddle._C_ops.full([], divisor, paddle.int64, paddle.CPUPlace())
    return (number - size % number) % number


def share_constants(program: paddle.static.Program) -> None:
    """Let operations that read equal constants on the host read the same one, and remove the others.

    Call it when the program is finished. What is fetched must not be such a constant. Paddle makes one for every number
    that an operation takes, and for every shape. They cost nothing to compute, but the time before the first step grows
    with the square of the number of operations.
    """
    made: dict[str, Value] = {}
    for operation in program.global_block().ops:
        if operation.name() not in _CONSTANTS:
            continue
        attributes = operation.attrs()
        if "place" not in attributes or not attributes["place"].is_cpu_place():
            continue
        key = " ".join([operation.name(), *(str(attributes.get(name)) for name in ("dtype", "shape", "value"))])
        result = operation.result(0)
        if key in made:
            result.replace_all_uses_with(made[key])
            operation.erase()
        else:
            made[key] = result
