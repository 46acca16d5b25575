"""Round the factors of matrix products to bfloat16, in a finished program for a CPU.

Sums, results, and all other operations stay float32, so the products need the memory of the rounded factors besides.
"""

from __future__ import annotations

from collections.abc import Collection

import paddle

from ernie_gram.kernels.operations import product_of_rows, rounded, rounded_product
from ernie_gram.paddle_private import Operation, Value, insert_at_end, insert_before

_MATMUL, _GRADIENT = "pd_op.matmul", "pd_op.matmul_grad"
# A product with a dimension up to this size is memory-bound: rounding its factors takes longer than it saves.
SMALL = 32


def round_factors(program: paddle.static.Program, kept: Collection[str]) -> None:
    """Replace large float32 products of rows by a matrix, and their gradients, by those of bfloat16 factors.

    Call it when the program is finished.

    Args:
        kept: IDs of values of the program that must stay.
    """
    block = program.global_block()
    # ID of a value -> the value rounded to bfloat16, once, before its first use in a product.
    made: dict[int, Value] = {}
    with paddle.static.program_guard(program):
        for operation in block.ops:
            if operation.name() not in (_MATMUL, _GRADIENT) or not _is_large(operation, kept):
                continue
            insert_before(operation)
            for value in operation.operands_source():
                if value.id not in made:
                    made[value.id] = rounded(value)
            x, matrix, *out = (made[value.id] for value in operation.operands_source())
            transposed = operation.attrs()["transpose_y"]
            if not out:
                operation.result(0).replace_all_uses_with(rounded_product(x, matrix, transposed))
            for number, result in enumerate(operation.results() if out else ()):
                if result.initialized() and number == 0:
                    result.replace_all_uses_with(rounded_product(out[0], matrix, not transposed))
                elif result.initialized():
                    factors = (out[0], x) if transposed else (x, out[0])
                    result.replace_all_uses_with(product_of_rows(*factors))
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
