"""Compute what a program without gradients makes of its parameters alone once, instead of in every run.

This is how the weights of queries, keys and values become one matrix, and weights are packed, which would otherwise be
done in each product, and rounded to bfloat16 if products are computed in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import paddle
from paddle.nn.initializer import Constant

from ernie_gram.formats.untrusted.arrays import forget_pages
from ernie_gram.kernels import bfloat16_products, blas, operations
from ernie_gram.paddle_private import Operation, Value, insert_before, untrained_parameter

# Computes a parameter from the arrays of others.
Compute = Callable[[list[np.ndarray]], np.ndarray]
Folded = dict[str, tuple[list[str], Compute]]
PACKED = "packed"
# A product by a matrix with a dimension up to this size stays as it is.
SMALL = 32


def fold_parameters(program: paddle.static.Program, rounds: bool = False) -> Folded:
    """Let a finished program read parameters that are joined and packed already, in place of its own.

    Args:
        rounds: whether the factors of products by packed matrices are rounded to bfloat16.

    Returns:
        The new parameters by name, each with the names of those that it is computed from, and how.
    """
    block, folded = program.global_block(), Folded()
    values = {parameter.name: parameter for parameter in block.all_parameters()}
    names = {parameter.id: name for name, parameter in values.items()}
    with paddle.static.program_guard(program, paddle.static.Program()):
        for operation in block.ops:
            found = _folding(operation, rounds)
            if found is None or not all(value.id in names for value in found[0]):
                continue
            read, compute, kind = found
            (result,) = operation.results()
            name = f"{kind}({', '.join(names[value.id] for value in read)})"
            if name not in folded:
                folded[name] = [names[value.id] for value in read], compute
                insert_before(block.ops[0])
                shape = [1] if kind == PACKED else result.shape
                values[name] = untrained_parameter(name, shape, Constant(0.0), result.dtype)
                names[values[name].id] = name
            new = values[name]
            if kind == PACKED:
                insert_before(operation)
                new = operations.packed_product(operation.operand_source(0), new, result.shape[-1], rounds)
            result.replace_all_uses_with(new)
            _erase(operation)
    erase_unread_parameters(program)
    return folded


def _folding(operation: Operation, rounds: bool) -> tuple[list[Value], Compute, str] | None:
    """Return what an operation reads, what it computes, and a name for it; None if it cannot be folded."""
    if operation.name() == "pd_op.concat":
        parts, axis = operation.operands_source()
        number = int(axis.get_defining_op().attrs()["value"])
        return parts.get_defining_op().operands_source(), partial(np.concatenate, axis=number), "joined"
    if operation.name() == "pd_op.matmul" and (rounds or blas.can_pack()) and _can_be_packed(operation):
        pack = bfloat16_products.pack if rounds else blas.pack
        return [operation.operand_source(1)], lambda given: pack(given[0]), PACKED
    return None


def _can_be_packed(operation: Operation) -> bool:
    x, matrix = operation.operands_source()
    is_plain = not any(operation.attrs()[f"transpose_{each}"] for each in "xy")
    is_large = len(matrix.shape) == 2 and min(matrix.shape) > SMALL and x.dtype == matrix.dtype == paddle.float32
    return is_plain and is_large and len(x.shape) > 1


def _erase(operation: Operation) -> None:
    """Erase an operation, and the list that it reads; parameters stay, because further operations may read them."""
    sources = [value.get_defining_op() for value in operation.operands_source()]
    operation.erase()
    for source in sources:
        if source.name() == "builtin.combine":
            source.erase()


def erase_unread_parameters(program: paddle.static.Program) -> None:
    """Remove the parameters that no operation of a program reads."""
    for parameter in program.global_block().all_parameters():
        if parameter.use_empty():
            parameter.get_defining_op().erase()


def computed(folded: Folded, name: str, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return a new parameter of a program on the CPU.

    Args:
        arrays: the other parameters.
    """
    names, compute = folded[name]
    made = compute([computed(folded, each, arrays) if each in folded else arrays[each] for each in names])
    for each in names:
        if each in arrays:
            forget_pages(arrays[each])
    return made
