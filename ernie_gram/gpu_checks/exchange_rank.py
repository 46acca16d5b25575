"""Script of each process of the check `ranks.row_exchange`: sum gradients by row and as a whole, and compare the sums.

Rank 0 prints the largest difference.
"""

from __future__ import annotations

# isort: off
from ernie_gram.distributed.world import World, start_world  # before Paddle: it sets the number of threads
from ernie_gram.distributed.buckets import BUCKET_NUMBERS
from ernie_gram.distributed.collectives import sum_array
from ernie_gram.distributed.row_exchange import sum_gradients
from ernie_gram.distributed.row_gradients import RowGradient

import numpy as np
import paddle
# isort: on

WIDTH = 64
# One row more than the largest table that is summed as a whole.
ROWS = BUCKET_NUMBERS // WIDTH + 1
# Used rows on each rank; some are the same on both.
USED = 2000


def gradient_of(rank: int) -> np.ndarray:
    """Return the gradient of a table of which few rows are used, float32 [ROWS, WIDTH]."""
    random = np.random.default_rng(rank)
    gradient = np.zeros((ROWS, WIDTH), np.float32)
    gradient[random.choice(ROWS // 2, USED, replace=False)] = random.standard_normal((USED, WIDTH))
    # A row with NaN, a row with a tiny number, and a row that is 0 on rank 0.
    gradient[-3, 5] = np.nan
    gradient[-2, 7] = 1e-30
    gradient[-1] = float(rank)
    return gradient


def summed(executor: paddle.static.Executor, world: World, by_row: bool) -> np.ndarray:
    """Return the sum of the gradients of all ranks."""
    program, gradient = paddle.static.Program(), gradient_of(world.rank)
    with paddle.static.program_guard(program, paddle.static.Program()), paddle.utils.unique_name.guard():
        table = paddle.static.data("table", [ROWS, WIDTH], "float32") * 1
        counts = paddle.static.data("counts", [ROWS], "float32") * 1
        _, (total,), exchanges = sum_gradients([RowGradient.counted(table, counts) if by_row else table], [], world)
    assert len(exchanges) == by_row
    feeds = {"table": gradient, "counts": (gradient != 0).any(1).astype(np.float32)}
    fetched = total.table if isinstance(total, RowGradient) else total
    return executor.run(program, feed=feeds, fetch_list=[fetched])[0]


def main() -> None:
    """Compare the sums on both ranks."""
    world = start_world("gpu")
    executor = paddle.static.Executor(world.place)
    expected = np.sum([gradient_of(rank) for rank in range(world.size)], axis=0)
    rows, whole = (summed(executor, world, by_row) for by_row in (True, False))
    difference = max(_largest(rows, whole), _largest(whole, expected))
    total = sum_array(executor, np.array([difference]), world)[0]
    if world.is_first:
        print(f"difference {total}")


def _largest(one: np.ndarray, two: np.ndarray) -> float:
    assert np.array_equal(np.isnan(one), np.isnan(two))
    return float(np.nanmax(np.abs(one - two)))


if __name__ == "__main__":
    main()
