"""Gradients of tables of which a step uses few rows, and their sums over ranks.

The gradient of an embedding that is only looked up is 0 in all rows but those of the units in the batch. The optimizer
updates all rows, because the moments of AdamW and the weight decay change rows without a gradient too. It therefore
needs the whole gradient, but everything before it reads and writes the used rows only.

Each rank knows its rows. Their counts are summed over ranks with the other gradients, so that all ranks know the rows
that any of them uses. Each rank puts these rows of its gradient, in ascending order, into one tensor, which is summed.

This is the dense sum, computed for fewer numbers: the other rows are 0 on every rank. As after every all_reduce, all
ranks have the same bits. With two ranks they are those of the dense sum. With more they may differ from it in rounding,
because all_reduce adds up the ranks in an order that depends on the place of a number in the tensor.

(Gathering the rows of every rank instead would send a row once for each rank that uses it, and Paddle 3.3.1 may not
find the NCCL communicator for operations that are not in place.)
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import paddle
import paddle.distributed as dist

from ernie_gram.distributed import collectives
from ernie_gram.distributed.collectives import sum_over_ranks
from ernie_gram.distributed.device import World
from ernie_gram.paddle_private import add_rows_, set_rows_

FLOAT = 4


@dataclass(frozen=True)
class Lookups:
    """The gradient of a table as one gradient per lookup; that of a row is the sum over the lookups of the row.

    Attributes:
        shape: of the table, [N, E].
        rows: the row that each lookup read, int64 [R].
        gradients: float32 [R, E].
    """

    shape: list[int]
    rows: paddle.Tensor
    gradients: paddle.Tensor

    @classmethod
    def of(cls, gradient: paddle.Tensor) -> Lookups:
        """Return the lookups of the gradient of a table, and remove the operation that computes it."""
        operation = gradient.get_defining_op()
        assert operation.name() == "pd_op.embedding_grad", "a table that is not only looked up"
        rows, table, gradients = operation.operands_source()
        operation.erase()
        return cls(list(table.shape), rows.flatten(), gradients.reshape([-1, table.shape[1]]))

    def add_to(self, table: paddle.Tensor, counts: paddle.Tensor) -> tuple[paddle.Tensor, paddle.Tensor]:
        """Add the gradients to `table` [N, E], and 1 for each lookup to `counts` [N], both float32 and in place.

        Returns both.
        """
        ones = paddle.ones_like(self.rows).astype("float32")
        return add_rows_(table, self.rows, self.gradients), add_rows_(counts, self.rows, ones)

    def by_row(self) -> RowGradient:
        """Return the sums by row."""
        table, counts = self.add_to(paddle.zeros(self.shape), paddle.zeros(self.shape[:1]))
        return RowGradient(table, counts, self.rows, paddle.gather(counts, self.rows))


@dataclass(frozen=True)
class RowGradient:
    """The gradient of a table, and which of its rows can differ from 0.

    Attributes:
        table: the gradient, float32 [N, E].
        counts: float32 [N], greater than 0 for the rows that can differ from 0, and 0 for the others.
        rows: the rows that can differ from 0, int64 [R]; a row may be there several times.
        repeats: how many times each of them is in `rows`, float32 [R].
    """

    table: paddle.Tensor
    counts: paddle.Tensor
    rows: paddle.Tensor
    repeats: paddle.Tensor

    @classmethod
    def counted(cls, table: paddle.Tensor, counts: paddle.Tensor) -> RowGradient:
        """Return the gradient in `table`; its rows are those whose count is not 0, each once."""
        rows = paddle.nonzero(counts).flatten()
        return cls(table, counts, rows, paddle.ones_like(rows).astype("float32"))

    @property
    def values(self) -> paddle.Tensor:
        """A copy of `rows` of the gradient, float32 [R, E]."""
        return paddle.gather(self.table, self.rows)

    def squared_norm(self, values: paddle.Tensor) -> paddle.Tensor:
        """Return the sum of the squares of the gradient, float32 [1]; `values` is the property, which makes a copy."""
        return ((values * values).sum(1) / self.repeats).sum().reshape([1])

    def replace(self, values: paddle.Tensor) -> RowGradient:
        """Set `rows` of the gradient in place to `values`, float32 [R, E], which are equal where a row is repeated."""
        table = set_rows_(self.table, self.rows, values)
        return RowGradient(table, self.counts, self.rows, self.repeats)


# A dense gradient, or that of a table of which few rows are used.
Gradient: TypeAlias = paddle.Tensor | RowGradient


def take_lookups(
    pairs: list[tuple[paddle.Tensor, paddle.Tensor]], sparse: Collection[str]
) -> list[tuple[paddle.Tensor, paddle.Tensor | Lookups]]:
    """Return parameters with their gradients, as `Lookups` for large tables that are only looked up.

    Sums of the gradients of lookups and others are rewritten: lookups add their rows in place.

    Args:
        pairs: parameters with their gradients, which were just added to the current program.
        sparse: names of parameters of which a step uses few rows. Those that are not larger than a bucket keep a dense
            gradient: an exchange of its own costs more than it saves, and on one process they take little time anyway.
    """
    return [
        (each, Lookups.of(gradient))
        if each.name in sparse and prod(each.shape) > collectives.BUCKET_NUMBERS
        else (each, _with_lookups_by_row(gradient))
        for each, gradient in pairs
    ]


def _with_lookups_by_row(gradient: paddle.Tensor) -> paddle.Tensor:
    """Return a sum of gradients of a table to which lookups add their rows, instead of a table of zeros each."""
    operation = gradient.get_defining_op()
    if operation.name() != "pd_op.add_n":
        return gradient
    joined = operation.operand_source(0).get_defining_op()
    lookups: list[paddle.Tensor] = []
    others: list[paddle.Tensor] = []
    for part in joined.operands_source():
        (lookups if part.get_defining_op().name() == "pd_op.embedding_grad" else others).append(part)
    if not lookups or not all(other.has_one_use() for other in others):
        return gradient
    # Without others, the first lookup makes the table.
    others = others or [lookups.pop(0)]
    operation.erase()
    joined.erase()
    total = others[0] if len(others) == 1 else paddle.add_n(others)
    for lookup in map(Lookups.of, lookups):
        total = add_rows_(total, lookup.rows, lookup.gradients)
    return total


def sum_gradients(
    gradients: list[Gradient], others: list[paddle.Tensor], world: World
) -> tuple[list[paddle.Tensor], list[Gradient], list[paddle.Tensor]]:
    """Add operations to the current program that sum gradients, and other tensors, over all ranks.

    Args:
        gradients: float32; those of a RowGradient are exchanged by row.
        others: float32 tensors that are summed together with the first gradients.

    Returns the sums of `others`, those of the gradients, and for each exchange by row the numbers in it, int64 scalars.
    """
    if world.size == 1:
        return others, gradients, []
    dense = [gradient for gradient in gradients if not isinstance(gradient, RowGradient)]
    tables = [gradient for gradient in gradients if isinstance(gradient, RowGradient)]
    sums = iter(sum_over_ranks([*others, *dense, *(table.counts for table in tables)], world))
    summed_others, summed = [next(sums) for _ in others], [next(sums) for _ in dense]
    # As in sum_over_ranks, each exchange ends with a 0 from the one before it. The rows of the first depend on the last
    # bucket, because the counts are in it.
    link, numbers, by_row = paddle.zeros([1]), [], []
    for table, counts in zip(tables, sums, strict=True):
        used = RowGradient.counted(table.table, counts)
        joined = paddle.concat([used.values.flatten(), link])
        dist.all_reduce(joined)
        link = joined[-1:]
        width = int(table.table.shape[1])
        # Rows that only other ranks use are 0 here, all others are replaced.
        by_row.append(used.replace(joined[:-1].reshape([-1, width])))
        numbers.append(paddle.shape(used.rows)[0].astype("int64") * width + 1)
    next_dense, next_table = iter(summed), iter(by_row)
    ordered = [next(next_table if isinstance(gradient, RowGradient) else next_dense) for gradient in gradients]
    return summed_others, ordered, numbers


def sent_bytes(program: paddle.static.Program, numbers: list[paddle.Tensor], world: World) -> paddle.Tensor:
    """Return the bytes that a rank sends in a run of a program, an int64 scalar.

    It counts the tensors of all all_reduce operations that the program has so far; those of float32 numbers. `numbers`
    are those in the exchanges by row. In a ring, every rank sends 2 (size - 1) / size times the bytes of a tensor.
    """
    shapes = [op.operand_source(0).shape for op in program.global_block().ops if op.name() == "pd_op.all_reduce_"]
    known = paddle.full([], sum(prod(shape) for shape in shapes if -1 not in shape), "int64")
    return paddle.add_n([known, *numbers]) * (2 * (world.size - 1) * FLOAT) // world.size
