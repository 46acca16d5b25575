"""Sums over ranks of gradients of which a step uses few rows: only rows that some rank uses are exchanged.

The gradient of an embedding that is only looked up is 0 in all rows but those of the units in the batch. Each rank
marks its rows that are not 0. The marks are summed over ranks with the other gradients, so that all ranks know the rows
that any of them uses. Each rank puts these rows of its gradient, in ascending order, into one tensor, which is summed.

This is the dense sum, computed for fewer numbers: the other rows are 0 on every rank. As after every all_reduce, all
ranks have the same bits. With two ranks they are those of the dense sum. With more they may differ from it in rounding,
because all_reduce adds up the ranks in an order that depends on the place of a number in the tensor.

Rows are found in the gradient and not in the batch, so it makes no difference from how many batches a gradient has been
accumulated. (Gathering the rows of every rank instead would send a row once for each rank that uses it, and Paddle
3.3.1 may not find the NCCL communicator for operations that are not in place.)
"""

from __future__ import annotations

from collections.abc import Collection
from math import prod

import paddle
import paddle.distributed as dist

from ernie_gram.distributed import collectives
from ernie_gram.distributed.buckets import is_summed_by_row
from ernie_gram.distributed.collectives import sum_over_ranks
from ernie_gram.distributed.ranks import World

FLOAT = 4


def sum_gradients(
    pairs: list[tuple[paddle.Tensor, paddle.Tensor]],
    others: list[paddle.Tensor],
    sparse: Collection[str],
    world: World,
) -> tuple[list[paddle.Tensor], list[paddle.Tensor], list[paddle.Tensor]]:
    """Add operations to the current program that sum gradients, and other tensors, over all ranks.

    Args:
        pairs: parameters with their gradients, float32.
        others: float32 tensors that are summed together with the first gradients.
        sparse: names of parameters of which a step uses few rows. Those that are larger than a bucket are exchanged by
            row; for smaller ones an exchange of their own is not worth it.

    Returns the sums of `others`, those of the gradients, and for each exchange by row the numbers in it, int64 scalars.
    """
    gradients = [gradient for _, gradient in pairs]
    if world.size == 1:
        return others, gradients, []
    tables = [
        i
        for i, (parameter, _) in enumerate(pairs)
        if parameter.name in sparse and is_summed_by_row(prod(parameter.shape), collectives.BUCKET_NUMBERS)
    ]
    dense = [i for i in range(len(pairs)) if i not in tables]
    marks = [_used_rows(gradients[i]) for i in tables]
    sums = sum_over_ranks([*others, *(gradients[i] for i in dense), *marks], world)
    for i, total in zip(dense, sums[len(others) :], strict=False):
        gradients[i] = total
    # As in sum_over_ranks, each exchange ends with a 0 from the one before it. The rows of the first depend on the last
    # bucket, because the marks are in it.
    link, numbers = paddle.zeros([1]), []
    for i, marked in zip(tables, sums[len(others) + len(dense) :], strict=True):
        rows = paddle.nonzero(marked).flatten()
        joined = paddle.concat([paddle.gather(gradients[i], rows).flatten(), link])
        dist.all_reduce(joined)
        link = joined[-1:]
        width = int(gradients[i].shape[1])
        # Rows that only other ranks use are 0 here, all others are replaced.
        gradients[i] = paddle.scatter(gradients[i], rows, joined[:-1].reshape([-1, width]))
        numbers.append(paddle.shape(rows)[0].astype("int64") * width + 1)
    return sums[: len(others)], gradients, numbers


def _used_rows(gradient: paddle.Tensor) -> paddle.Tensor:
    """Return 1 for each row that has a number other than 0, for example NaN, and 0 for the others, float32 [rows].

    (Paddle's `!=` would not do: it takes numbers up to 1e-8 for 0.)
    """
    return gradient.astype("bool").any(1).astype("float32")


def sent_bytes(program: paddle.static.Program, numbers: list[paddle.Tensor], world: World) -> paddle.Tensor:
    """Return the bytes that a rank sends in a run of a program, an int64 scalar.

    It counts the tensors of all all_reduce operations that the program has so far; those of float32 numbers. `numbers`
    are those in the exchanges by row. In a ring, every rank sends 2 (size - 1) / size times the bytes of a tensor.
    """
    shapes = [op.operand_source(0).shape for op in program.global_block().ops if op.name() == "pd_op.all_reduce_"]
    known = paddle.full([], sum(prod(shape) for shape in shapes if -1 not in shape), "int64")
    return paddle.add_n([known, *numbers]) * (2 * (world.size - 1) * FLOAT) // world.size
