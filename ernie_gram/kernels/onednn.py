"""Use kernels of oneDNN, and matrix products in bfloat16, in a finished program for a CPU.

Paddle's package contains oneDNN, but its pass that selects oneDNN's kernels takes every operation that it can, and
many of those are slower or fail in a training program (3.3.1). So single operations are copied into a program of their
own, the pass is applied to that program, and its operations are copied back to where they came from. All of this is
bound to Paddle 3.3, whose pass and program representation have no documented interface.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

import paddle

from ernie_gram.distributed.processor import ONEDNN_SETTING
from ernie_gram.paddle_private import (
    Block,
    IrMapping,
    Operation,
    Value,
    clone,
    insert_at_end,
    insert_before,
    run_pass,
)
from reader.errors import InputError

_PASS, _FROM, _TO = "onednn_placement_pass", "pd_op.", "onednn_op."
_MATMUL, _MATMUL_GRAD = "pd_op.matmul", "pd_op.matmul_grad"
_CONSTANTS = ("pd_op.full", "pd_op.full_int_array")
# Boolean attribute of the casts and products that `_round_factors` makes.
_ROUNDED = "rounded_product"
# A product with a dimension up to this size is memory-bound: rounding its factors takes longer than it saves.
SMALL = 32


def use_onednn(
    program: paddle.static.Program, kinds: Collection[str], rounds_factors: bool, kept: Collection[str]
) -> int:
    """Let operations of a program be computed by oneDNN; return how many.

    Call it when the program is finished. Results are the same, except for rounding. No dimension may be 0 when the
    program is run: oneDNN's kernels fail there.

    Args:
        kinds: names of the operations in Paddle, such as "gelu" and "gelu_grad"; float32 operations only are moved.
        rounds_factors: whether the factors of float32 products are rounded to bfloat16. Sums, results, and all other
            operations stay float32, so the products need the memory of the rounded factors besides.
        kept: IDs of values of the program that must stay.
    """
    block = program.global_block()
    with paddle.static.program_guard(program):
        if rounds_factors:
            _round_factors(block, kept)
        names = {_FROM + kind for kind in kinds}
        chosen = [op for op in block.ops if op.has_attr(_ROUNDED) or (op.name() in names and _is_movable(op, kept))]
        moved = _move(chosen)
    insert_at_end(block)
    return moved


def _is_movable(operation: Operation, kept: Collection[str]) -> bool:
    """Return whether all inputs and results are float32 tensors that are needed, and no result is fetched."""
    # oneDNN's kernels compute all results, and fail without a place for one.
    values = [*operation.operands_source(), *operation.results()]
    return all(value.initialized() and value.dtype == paddle.float32 for value in values) and not any(
        result.id in kept for result in operation.results()
    )


def _marked(result: Value) -> Value:
    result.get_defining_op().set_bool_attr(_ROUNDED, True)
    return result


def _round_factors(block: Block, kept: Collection[str]) -> None:
    """Replace large float32 products and their gradients by products of bfloat16 factors."""
    # ID of a value -> the value rounded to bfloat16, once, before its first use in a product.
    rounded: dict[int, Value] = {}
    for operation in block.ops:
        if operation.name() not in (_MATMUL, _MATMUL_GRAD) or not _is_large(operation, kept):
            continue
        insert_before(operation)
        for value in operation.operands_source():
            if value.id not in rounded:
                rounded[value.id] = _marked(paddle.cast(value, paddle.bfloat16))
        x, y, *out = (rounded[value.id] for value in operation.operands_source())
        transposed = operation.attrs()["transpose_x"], operation.attrs()["transpose_y"]
        if operation.name() == _MATMUL:
            results: list[Value | None] = [_product(x, y, *transposed)]
        else:
            wanted = [result.initialized() for result in operation.results()]
            results = _gradients((x, y), out[0], transposed, wanted)
        for old, new in zip(operation.results(), results, strict=True):
            if new is not None:
                new.set_type(old.type())  # float32
                old.replace_all_uses_with(new)
        operation.erase()


def _is_large(operation: Operation, kept: Collection[str]) -> bool:
    """Return whether no dimension of a float32 product is known to be small, and its results may be replaced."""
    x, y = operation.operands_source()[:2]
    if x.dtype != paddle.float32 or y.dtype != paddle.float32 or any(each.id in kept for each in operation.results()):
        return False
    if len(x.shape) == len(y.shape):
        # Gradients of factors that broadcast would have to be summed. Unknown dimensions are taken to be equal.
        if list(x.shape[:-2]) != list(y.shape[:-2]):
            return False
    elif len(y.shape) != 2 or operation.attrs()["transpose_x"]:
        return False
    sizes = (*x.shape[-2:], *y.shape[-2:])
    return len(sizes) == 4 and all(size < 0 or size > SMALL for size in sizes)


def _product(x: Value, y: Value, transpose_x: bool, transpose_y: bool) -> Value:
    return _marked(paddle.matmul(x, y, transpose_x, transpose_y))


def _gradients(
    factors: tuple[Value, Value], out: Value, transposed: tuple[bool, bool], wanted: list[bool]
) -> list[Value | None]:
    """Return the gradients of the factors of a product, given that of its result; None for one that is not wanted."""
    (x, y), (transpose_x, transpose_y) = factors, transposed
    gradient_x = gradient_y = None
    if wanted[0]:
        # x' = x^T: the gradient of x is the transpose of that of x'.
        gradient_x = _product(y, out, transpose_y, True) if transpose_x else _product(out, y, False, not transpose_y)
    if wanted[1]:
        if len(y.shape) < len(x.shape):
            # [B, L, K] x [K, N]: one product over all rows. oneDNN's own gradient is summed by a slow kernel.
            x, out = (paddle.flatten(rows, 0, len(rows.shape) - 2) for rows in (x, out))
        gradient_y = _product(out, x, True, transpose_x) if transpose_y else _product(x, out, not transpose_x, False)
    return [gradient_x, gradient_y]


def _move(operations: list[Operation]) -> int:
    """Replace operations by those of oneDNN; return how many were replaced: all of them or none."""
    if not operations:
        return 0
    _register_onednn()
    copy = _copies(operations)
    run_pass(copy, _PASS)
    names = {operation.name().replace(_FROM, _TO) for operation in operations}
    placed = [operation for operation in copy.global_block().ops if operation.name() in names]
    if len(placed) != len(operations):
        raise InputError(
            f"Paddle {paddle.__version__} took oneDNN kernels for {len(placed)} of {len(operations)} operations; "
            f"set {ONEDNN_SETTING}=0 and use float32, or use Paddle 3.3"
        )
    for operation, template in zip(operations, placed, strict=True):
        _replace(operation, template)
    return len(operations)


@cache
def _register_onednn() -> None:
    """Run an empty program: Paddle registers oneDNN's operations when it runs its first one."""
    paddle.static.Executor(paddle.CPUPlace()).run(paddle.static.Program())


def _copies(operations: list[Operation]) -> paddle.static.Program:
    """Return a program with copies of operations, in their order, that read placeholders."""
    copy = paddle.static.Program()
    with paddle.static.program_guard(copy):
        for index, operation in enumerate(operations):
            mapping = IrMapping()
            for number, value in enumerate(operation.operands_source()):
                if not value.initialized() or mapping.has(value):
                    continue
                source = value.get_defining_op()
                if source.name() in _CONSTANTS:
                    # An operation of oneDNN has them as attributes.
                    clone(source, mapping)
                else:
                    mapping.add(value, paddle.static.data(f"x{index}_{number}", value.shape, value.dtype))
            clone(operation, mapping)
    return copy


def _replace(operation: Operation, template: Operation) -> None:
    """Replace an operation by a copy of a template."""
    mapping = IrMapping()
    for own, others in zip(operation.operands_source(), template.operands_source(), strict=False):
        if own.initialized():
            mapping.add(others, own)
    if template.has_attr("is_test"):
        template.set_bool_attr("is_test", False)
    if operation.name() == _MATMUL:
        template.set_bool_attr("force_fp32_output", True)
    insert_before(operation)
    for old, new in zip(operation.results(), clone(template, mapping).results(), strict=True):
        new.set_type(old.type())
        old.replace_all_uses_with(new)
    operation.erase()
