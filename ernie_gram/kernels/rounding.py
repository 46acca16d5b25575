"""Products of bfloat16 factors in finished programs for a CPU, outside of encoder layers."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import paddle

from ernie_gram.distributed.device import on_cpu
from ernie_gram.distributed.processor import no_bfloat16
from ernie_gram.kernels import bfloat16_products, operations
from ernie_gram.kernels.products import SMALL
from ernie_gram.paddle_private import Operation, Value, insert_at_end, insert_before
from reader.errors import InputError

_MATMUL, _GRADIENT = "pd_op.matmul", "pd_op.matmul_grad"


def check_precision(precision: str) -> None:
    """Raise InputError if this device is a CPU without products of the precision."""
    if precision == "bfloat16" and on_cpu():
        reason = no_bfloat16() or ("" if bfloat16_products.is_available() else "this Paddle has no oneDNN")
        if reason:
            raise InputError(f"no products in bfloat16 on this CPU: {reason}; use float32")


def round_factors(program: paddle.static.Program, fetched: Iterable[Value]) -> None:
    """Replace large float32 products of rows by a matrix, and their gradients, by those of bfloat16 factors.

    Call it when the program is finished.

    Args:
        fetched: values of the program that must stay.
    """
    block, kept = program.global_block(), {value.id for value in fetched}
    # ID of a value -> the value rounded to bfloat16, once, before its first use in a product.
    made: dict[int, Value] = {}
    with paddle.static.program_guard(program):
        for operation in block.ops:
            if operation.name() not in (_MATMUL, _GRADIENT) or not _is_large(operation, kept):
                continue
            insert_before(operation)
            for value in operation.operands_source():
                if value.id not in made:
                    made[value.id] = operations.rounded(value)
            x, matrix, *out = (made[value.id] for value in operation.operands_source())
            transposed = operation.attrs()["transpose_y"]
            if not out:
                operation.result(0).replace_all_uses_with(operations.rounded_product(x, matrix, transposed))
            for number, result in enumerate(operation.results() if out else ()):
                if result.initialized() and number == 0:
                    result.replace_all_uses_with(operations.rounded_product(out[0], matrix, not transposed))
                elif result.initialized():
                    factors = (out[0], x) if transposed else (x, out[0])
                    result.replace_all_uses_with(operations.product_of_rows(*factors))
            operation.erase()
    insert_at_end(block)


def _is_large(operation: Operation, kept: Collection[str]) -> bool:
    """Return whether the rows and the matrix of a float32 product are not small, and its results may be replaced."""
    x, matrix = operation.operands_source()[:2]
    is_float32 = x.dtype == matrix.dtype == paddle.float32
    if not is_float32 or len(matrix.shape) != 2 or len(x.shape) < 2 or operation.attrs()["transpose_x"]:
        return False
    sizes = (*x.shape[-2:], *matrix.shape)
    return not any(each.id in kept for each in operation.results()) and all(not 0 <= n <= SMALL for n in sizes)
