"""Choose the kernels of a finished program for a CPU, and replace slow operations of Paddle by compiled ones.

In Paddle 3.3.1, dropout draws one number after the other, the gradient of a layer norm takes ten times as long as
reading and writing its tensors, and both use one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import paddle

from ernie_gram.distributed.device import on_cpu
from ernie_gram.distributed.processor import no_bfloat16
from ernie_gram.graph import LAYER
from ernie_gram.kernels import bfloat16_products, blas, operations
from ernie_gram.paddle_private import Operation, Value, insert_at_end, insert_before
from reader.errors import InputError

_MATMUL, _GRADIENT = "pd_op.matmul", "pd_op.matmul_grad"
# A product with a dimension up to this size is memory-bound: rounding its factors takes longer than it saves.
SMALL = 32
# Operations whose results have memory of their own.
_FRESH = ("pd_op.matmul", "pd_op.add")


def use_kernels(program: paddle.static.Program, precision: str, fetched: Iterable[Value]) -> None:
    """Let a program use the kernels that are fastest on this processor; on a GPU, do nothing.

    Args:
        precision: of matrix products, "float32" or "bfloat16"; the program itself is float32.
        fetched: values of the program that must stay.

    Raises InputError if bfloat16 is asked for and not possible.
    """
    if not on_cpu():
        return
    check_precision(precision)
    kept = {value.id for value in fetched}
    use_compiled(program, kept)
    if precision == "bfloat16":
        round_factors(program, kept)


def check_precision(precision: str) -> None:
    """Raise InputError if this device is a CPU without products of the precision."""
    if precision == "bfloat16" and on_cpu():
        reason = no_bfloat16() or ("" if bfloat16_products.is_available() else "this Paddle has no oneDNN")
        if reason:
            raise InputError(f"no products in bfloat16 on this CPU: {reason}; use float32")


def can_fuse_attention() -> bool:
    """Return whether programs may be built with the compiled attention of operations.py."""
    return on_cpu() and blas.is_available()


def use_compiled(program: paddle.static.Program, kept: Collection[str]) -> None:
    """Use compiled functions for dropout, its gradient, that of layer norm, and biases.

    In a program without gradients, gelu and layer norm include the additions of biases and residuals before them.

    Only float32 operations are replaced; results are the same except for rounding. Call it when the program is
    finished.

    A number is dropped with the probability round(65,536 p) / 65,536, which differs from p by less than 8e-6, and by
    less than 2e-5 where p is almost 1. The masks depend on Paddle's seed alone.

    Args:
        kept: IDs of values of the program that must stay.
    """
    block = program.global_block()
    with paddle.static.program_guard(program):
        for rewrites in _STAGES:
            for operation in [each for each in block.ops if each.name() in rewrites]:
                results = [result for result in operation.results() if result.initialized()]
                if results[0].dtype == paddle.float32 and not _is_kept(operation, kept):
                    insert_before(operation)
                    rewrites[operation.name()](operation, kept)
        _draw_together([each for each in block.ops if operations.is_dropout_key(each)])
    insert_at_end(block)


def _draw_together(keys: list[Operation]) -> None:
    """Let one operation draw the keys of all dropouts: the time before the first step grows with their number."""
    if len(keys) > 1:
        insert_before(keys[0])
        for key, drawn in zip(keys, operations.dropout_keys(len(keys)), strict=True):
            key.result(0).replace_all_uses_with(drawn)
            key.erase()


def _is_kept(operation: Operation, kept: Collection[str]) -> bool:
    return any(result.id in kept for result in operation.results())


def _has_one_reader(value: Value, kept: Collection[str]) -> bool:
    return value.id not in kept and value.has_one_use()


def _is_free(value: Value, kept: Collection[str]) -> bool:
    """Return whether the only operation that reads a value may overwrite its memory."""
    return value.get_defining_op().name() in _FRESH and _has_one_reader(value, kept)


def _dropout(operation: Operation, _: Collection[str]) -> None:
    _replace(operation, operations.dropout(operation.operand_source(0), operations.dropout_key(), _rate(operation)))


def _dropout_gradient(operation: Operation, _: Collection[str]) -> None:
    mask, gradient, _ = operation.operands_source()
    _replace(operation, operations.masked(gradient, mask, _rate(operation)))


def _layer_norm_gradient(operation: Operation, _: Collection[str]) -> None:
    x, scale, bias, mean, variance, gradient = operation.operands_source()
    if scale.initialized() and bias.initialized():
        epsilon = float(operation.attrs()["epsilon"])
        _replace(operation, operations.layer_norm_backward(x, scale, mean, variance, gradient, epsilon))


def _is_read_once(x: Value, reader: Operation, kept: Collection[str]) -> bool:
    """Return whether only `reader` reads x, and is not in a marked layer.

    A marked layer is recomputed by a copy with gradients, which must give the same bits, so it is not changed.
    """
    return _has_one_reader(x, kept) and not reader.has_attr(LAYER)


def _adds_bias(operation: Operation) -> bool:
    """Return whether an operation adds a bias [n] to rows [..., n], or is the gradient of that."""
    if operation.name() not in ("pd_op.add", "pd_op.add_grad"):
        return False
    rows, bias = operation.operands_source()[:2]
    return len(rows.shape) > 1 and list(bias.shape) == [rows.shape[-1]]


def _addition_gradient(operation: Operation, _: Collection[str]) -> None:
    """Replace the gradient of a bias by the sum of the gradient's rows, if that of the rows is not read."""
    _, bias, gradient = operation.operands_source()
    is_alone = not operation.result(0).all_used_ops()
    if is_alone and _adds_bias(operation) and gradient.shape[-1] == bias.shape[0]:
        (new,) = operations.sum_of_rows(gradient)
        operation.result(1).replace_all_uses_with(new)
        operation.erase()


def _gelu(operation: Operation, kept: Collection[str]) -> None:
    """Replace the exact gelu of rows + bias, and its gradient, if nothing else reads the sum."""
    x = operation.operand_source(0)
    addition, gradients = x.get_defining_op(), [each for each in x.all_used_ops() if each.name() == "pd_op.gelu_grad"]
    is_read_here = x.id not in kept and len(x.all_used_ops()) == 1 + len(gradients)
    if not _adds_bias(addition) or not is_read_here or operation.attrs()["approximate"]:
        return
    rows, bias = addition.operands_source()
    _replace(operation, operations.biased_gelu(rows, bias, _is_free(rows, kept) and not gradients))
    for gradient in gradients:
        insert_before(gradient)
        _replace(gradient, operations.biased_gelu_backward(rows, bias, gradient.operand_source(1)))
    addition.erase()


def _layer_norm(operation: Operation, kept: Collection[str]) -> None:
    """Replace the layer norm of residual + rows + bias, if only it reads the sums; in training its gradient does."""
    x, scale, shift = operation.operands_source()
    addition = x.get_defining_op()
    if addition.name() != "pd_op.add" or not _is_read_once(x, operation, kept):
        return
    residual, last = addition.operands_source()
    inner = last.get_defining_op()
    is_last_axis = all(each.initialized() and list(each.shape) == [x.shape[-1]] for each in (scale, shift))
    if not is_last_axis or not _adds_bias(inner) or not _has_one_reader(last, kept):
        return
    rows, bias = inner.operands_source()
    if list(residual.shape) == list(rows.shape):
        inputs, epsilon = (rows, bias, residual, scale, shift), float(operation.attrs()["epsilon"])
        (new,) = operations.normalised_sum(*inputs, epsilon, _is_free(rows, kept))
        operation.result(0).replace_all_uses_with(new)
        for replaced in (operation, addition, inner):
            replaced.erase()


def _addition(operation: Operation, kept: Collection[str]) -> None:
    """Replace the addition of a bias."""
    if _adds_bias(operation):
        rows, bias = operation.operands_source()
        _replace(operation, operations.add_bias(rows, bias, _is_free(rows, kept)))


# Replacements that remove other operations come first.
_STAGES: tuple[dict[str, Callable[[Operation, Collection[str]], None]], ...] = (
    {"pd_op.add_grad": _addition_gradient},
    {"pd_op.gelu": _gelu, "pd_op.layer_norm": _layer_norm},
    {
        "pd_op.dropout": _dropout,
        "pd_op.dropout_grad": _dropout_gradient,
        "pd_op.layer_norm_grad": _layer_norm_gradient,
        "pd_op.add": _addition,
    },
)


def _rate(dropout: Operation) -> float:
    """Return the rate of a dropout, or of its gradient; it is the last input."""
    return float(dropout.operands_source()[2].get_defining_op().attrs()["value"])


def _replace(operation: Operation, new: Sequence[Value]) -> None:
    """Replace an operation and its results by new values, which get its mark of a layer."""
    for old, value in zip(operation.results(), new, strict=True):
        if operation.has_attr(LAYER):
            value.get_defining_op().set_int_attr(LAYER, operation.int_attr(LAYER))
        if old.initialized():
            old.replace_all_uses_with(value)
    operation.erase()


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
