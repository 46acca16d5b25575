"""Recompute (activation checkpointing): free the results of a layer, and compute them again for the backward pass.

Layers are marked while the program is built. After the backward pass has been added, the program is rewritten: marked
operations are copied to where their results are first needed again, and the backward pass reads the copies. The copies
have the same inputs and draw no random numbers, so on a CPU all results stay the same to the bit: dropout is applied
again with the mask that was drawn, which is kept (1 byte per number), as are the inputs of the layers.

Paddle's own recompute draws new masks (3.3.1), so its gradients are wrong with dropout.
"""

from __future__ import annotations

import paddle

from ernie_gram.graph import LAYER, float32
from ernie_gram.paddle_private import (
    IrMapping,
    Operation,
    Value,
    clone,
    combine,
    dropout_gradient,
    insert_after,
    insert_at_end,
    insert_before,
)

_DROPOUT = "pd_op.dropout"


def recompute_layers(total: Value) -> None:
    """Rewrite the program to which the backward pass from `total` was just added, so that it recomputes marked layers.

    Sums of gradients are rewritten too: each gradient is added when it is computed, in the same order. Otherwise the
    gradients of a tensor that all layers read would be kept until the end, and that of the attention bias is as large
    as the scores.
    """
    operations = total.block.ops
    last = total.get_defining_op().id()
    end = 1 + next(i for i, operation in enumerate(operations) if operation.id() == last)
    forward, backward = operations[:end], operations[end:]
    copies = _Copies(_read_elsewhere(forward))
    for operation in backward:
        within = [inner for block in operation.blocks() for inner in block.ops]
        for reader in (operation, *within):
            for operand in reader.operands():
                # Some gradients read only the shape of a value, and a freed value still has it.
                is_read = not reader.is_no_need_buffer(operand.source())
                if is_read and copies.is_freed(operand.source()):
                    operand.set_source(copies.of(operand.source(), before=operation))
    _add_early(backward)
    insert_at_end(total.block)


class _Copies:
    """The copies made so far. `kept` has the ids of results of marked operations that are not freed."""

    def __init__(self, kept: set[int]) -> None:
        self._kept = kept
        self._values = IrMapping()

    def is_freed(self, value: Value) -> bool:
        """Return whether a value of the forward pass is to be computed again."""
        operation = _source(value)
        if operation is None or not operation.has_attr(LAYER) or value.id in self._kept:
            return False
        # The mask of a dropout is kept.
        return (operation.name(), value.index()) != (_DROPOUT, 1)

    def of(self, value: Value, before: Operation) -> Value:
        """Return the copy of a freed value; the operations that it still needs are added in front of `before`."""
        if not self._values.has(value):
            self._copy(value.get_defining_op(), before)
        return self._values.look_up(value)

    def _copy(self, operation: Operation, before: Operation) -> None:
        for value in operation.operands_source():
            if self.is_freed(value):
                self.of(value, before)
            elif _source(value) is not None and not self._values.has(value):
                self._values.add(value, value)
        insert_before(before)
        if operation.name() != _DROPOUT:
            clone(operation, self._values)
            return
        (x, _, rate), (dropped, mask) = operation.operands_source(), operation.results()
        x, rate, attributes = self._values.look_up(x), self._values.look_up(rate), operation.attrs()
        # The gradient of dropout does to a gradient what dropout does to x, and takes the mask as an input.
        again = dropout_gradient(mask, x, rate, attributes["is_test"], attributes["mode"])
        self._values.add(dropped, again)


def _source(value: Value) -> Operation | None:
    """Return the operation that computes a value; None for an optional input that is not given."""
    return value.get_defining_op() if value.initialized() else None


def _read_elsewhere(forward: list[Operation]) -> set[int]:
    """Return the ids of the values that are read by operations outside the layer that computes them."""
    layer_of: dict[int, int] = {}
    found = set()
    for operation in forward:
        layer = operation.int_attr(LAYER) if operation.has_attr(LAYER) else -1
        for value in operation.operands_source():
            if value.initialized() and layer_of.get(value.id, layer) != layer:
                found.add(value.id)
        layer_of |= {value.id: layer for value in operation.results()}
    return found


def _add_early(backward: list[Operation]) -> None:
    """Rewrite sums of more than two gradients: all but the last are added as soon as they are computed.

    As in the sums that they replace, gradients in half precision are added in float32.
    """
    place = {operation.id(): i for i, operation in enumerate(backward)}
    for operation in backward:
        if operation.name() != "pd_op.add_n":
            continue
        together = operation.operand_source(0).get_defining_op()
        total, *others, final = together.operands_source()
        if not others or any(value.get_defining_op().id() not in place for value in (total, *others)):
            continue
        latest = total.get_defining_op()
        insert_after(latest)
        total = float32(total)
        for value in others:
            latest = max(latest, value.get_defining_op(), key=lambda each: place[each.id()])
            insert_after(latest)
            total = paddle.add(total, float32(value))
            addition = total.get_defining_op()
            place[addition.id()] = place[latest.id()]
            latest = addition
        insert_before(operation)
        if final.dtype == paddle.float32:
            # The sum itself stays, because the optimizer may have been given its result.
            operation.operand(0).set_source(combine([total, final]))
        else:
            half = paddle.add(total, float32(final)).astype(final.dtype)
            operation.result(0).replace_all_uses_with(half)
            operation.erase()
        together.erase()
