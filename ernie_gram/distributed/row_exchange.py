"""Sums over ranks of gradients of which a step uses few rows: only rows that some rank uses are exchanged.

Each rank knows its rows (see row_gradients.py). Their counts are summed over ranks with the other gradients, so that
all ranks know the rows that any of them uses. Each rank puts these rows of its gradient, in ascending order, into one
tensor, which is summed.

This is the dense sum, computed for fewer numbers: the other rows are 0 on every rank. As after every all_reduce, all
ranks have the same bits. With two ranks they are those of the dense sum. With more they may differ from it in rounding,
because all_reduce adds up the ranks in an order that depends on the place of a number in the tensor.

(Gathering the rows of every rank instead would send a row once for each rank that uses it, and Paddle 3.3.1 may not
find the NCCL communicator for operations that are not in place.)
"""

from __future__ import annotations

from math import prod

import paddle
import paddle.distributed as dist

from ernie_gram.distributed.collectives import sum_over_ranks
from ernie_gram.distributed.ranks import World
from ernie_gram.distributed.row_gradients import Gradient, RowGradient

FLOAT = 4


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
