"""Compute what a program without gradients makes of its parameters alone once, instead of in every run.

This is how the weights of queries, keys and values become one matrix, and weights are rounded to bfloat16.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import paddle
from paddle.nn.initializer import Constant

from ernie_gram.graph import dynamic_mode
from ernie_gram.paddle_private import Operation, Value, insert_before, untrained_parameter

# Computes a parameter from others, on the CPU.
Compute = Callable[[list[paddle.Tensor]], paddle.Tensor]
Folded = dict[str, tuple[list[str], Compute]]


def fold_parameters(program: paddle.static.Program) -> Folded:
    """Let a finished program read new parameters instead of joining and rounding its own; those it no longer reads go.

    Returns:
        The new parameters by name, each with the names of those that it is computed from, and how.
    """
    block, folded = program.global_block(), Folded()
    names = {parameter.id: parameter.name for parameter in block.all_parameters()}
    with paddle.static.program_guard(program, paddle.static.Program()):
        for operation in block.ops:
            found = _folding(operation)
            if found is None or not all(value.id in names for value in found[0]):
                continue
            values, compute, kind = found
            (result,) = operation.results()
            name = f"{kind}({', '.join(names[value.id] for value in values)})"
            folded[name] = [names[value.id] for value in values], compute
            insert_before(block.ops[0])
            new = untrained_parameter(name, result.shape, Constant(0.0), result.dtype)
            names[new.id] = name
            result.replace_all_uses_with(new)
            _erase_unread(operation)
    return folded


def _folding(operation: Operation) -> tuple[list[Value], Compute, str] | None:
    """Return what an operation reads, what it computes, and a name for it; None if it cannot be folded."""
    if operation.name() == "pd_op.concat":
        parts, axis = operation.operands_source()
        number = int(axis.get_defining_op().attrs()["value"])
        return parts.get_defining_op().operands_source(), partial(paddle.concat, axis=number), "joined"
    if operation.name().endswith("_op.cast"):
        dtype = operation.result(0).dtype
        return operation.operands_source(), lambda given: given[0].astype(dtype), "rounded"
    return None


def _erase_unread(operation: Operation) -> None:
    """Erase an operation whose results nothing reads, and those before it that nobody reads then."""
    sources = {value.get_defining_op().id(): value.get_defining_op() for value in operation.operands_source()}
    operation.erase()
    for source in sources.values():
        if all(result.use_empty() for result in source.results()):
            _erase_unread(source)


def computed(folded: Folded, name: str, array_of: Callable[[str], np.ndarray]) -> paddle.Tensor:
    """Return a new parameter of a program on the CPU.

    Args:
        array_of: returns another parameter.
    """
    names, compute = folded[name]
    with dynamic_mode(), paddle.no_grad():
        given = [
            computed(folded, each, array_of) if each in folded else paddle.to_tensor(array_of(each), place="cpu")
            for each in names
        ]
        return compute(given)
