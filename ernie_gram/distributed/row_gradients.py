"""Gradients of tables of which a step uses few rows, in a form for the exchange between processes and for clipping.

The gradient of an embedding that is only looked up is 0 in all rows but those of the units in the batch. The optimizer
updates all rows, because the moments of AdamW and the weight decay change rows without a gradient too. It therefore
needs the whole gradient, but everything before it reads and writes the used rows only.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import prod

import paddle

from ernie_gram.distributed.buckets import is_summed_by_row
from ernie_gram.paddle_private import add_rows_, set_rows_


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
Gradient = paddle.Tensor | RowGradient


def take_lookups(
    pairs: list[tuple[paddle.Tensor, paddle.Tensor]], sparse: Collection[str]
) -> list[tuple[paddle.Tensor, paddle.Tensor | Lookups]]:
    """Return parameters with their gradients, as `Lookups` for large tables that are only looked up.

    Args:
        pairs: parameters with their gradients, which were just added to the current program.
        sparse: names of parameters of which a step uses few rows. Those that are not larger than a bucket keep a dense
            gradient: an exchange of its own costs more than it saves, and on one process they take little time anyway.
    """
    return [
        (each, _taken(each, gradient) if each.name in sparse and is_summed_by_row(prod(each.shape)) else gradient)
        for each, gradient in pairs
    ]


def _taken(parameter: paddle.Tensor, gradient: paddle.Tensor) -> Lookups:
    """Return a gradient as `Lookups`, and remove the operation that computes it for the whole table."""
    operation = gradient.get_defining_op()
    assert operation.name() == "pd_op.embedding_grad", f"{parameter.name} is not only looked up"
    rows, _, gradients = operation.operands_source()
    operation.erase()
    shape = list(parameter.shape)
    return Lookups(shape, rows.flatten(), gradients.reshape([-1, shape[1]]))
