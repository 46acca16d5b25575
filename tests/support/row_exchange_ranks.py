"""One rank of a job that exchanges gradients by row and densely; it writes RANK.npz to the folder in argument 1."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from ernie_gram.distributed import collectives
from ernie_gram.distributed.row_gradients import RowGradient, sum_gradients
from ernie_gram.distributed.world import World, start_world
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.training.program import build_training
from ernie_gram.training.variables import get_arrays
from tests.support.small_model import MODEL, TOKENS, config_of, random_batch
from tests.support.static_programs import job_of

import paddle  # isort: skip
from paddle.distributed import collective  # isort: skip

STEPS, NGRAMS = 20, 300
# Small buckets, so that even a small table is larger than a bucket.
BUCKET_NUMBERS = 5000
WIDTH = MODEL.hidden_size
CONFIG = config_of("full", replace(MODEL, num_hidden_layers=1))
CONFIG = replace(CONFIG, optimizer=replace(CONFIG.optimizer, learning_rate=1e-3))


def train(executor: paddle.static.Executor, world: World, by_row: bool) -> dict[str, np.ndarray]:
    """Return the parameters after some steps of the full objective, and the bytes that were sent in each."""
    with paddle.static.scope_guard(paddle.static.Scope()):
        program = build_training(job_of(CONFIG, CorpusSizes(TOKENS, NGRAMS), world.size, by_row), world)
        paddle.seed(1)
        executor.run(program.startup)
        sent = []
        for step in range(STEPS):
            paddle.seed(step * world.size + world.rank)
            sent.append(program.run(executor, random_batch("both", step * world.size + world.rank))["sent_bytes"])
        return {**get_arrays(program.parameters), "sent": np.array(sent)}


def gradients_of(rank: int) -> dict[str, np.ndarray]:
    """Return gradients of a table with used rows of many kinds."""
    random = np.random.default_rng(rank)
    rows, width = BUCKET_NUMBERS // 6, 7
    cases = {name: np.zeros((rows, width), np.float32) for name in ("some", "none", "one", "all", "tiny", "nan")}
    cases["some"][random.choice(rows, rows // 2, False)] = random.standard_normal((rows // 2, width))
    if rank == 1:
        cases["one"][-1, 3] = 1.5
    cases["all"][:] = random.standard_normal((rows, width))
    cases["tiny"][rank, 0], cases["tiny"][40:] = 1e-30, -0.0
    cases["nan"][7], cases["nan"][8, 6] = np.nan, np.inf
    return cases


def sum_each(executor: paddle.static.Executor, world: World, by_row: bool) -> dict[str, np.ndarray]:
    """Return the sums of the gradients over all ranks."""
    cases = gradients_of(world.rank)
    program = paddle.static.Program()
    with paddle.static.program_guard(program, paddle.static.Program()), paddle.utils.unique_name.guard():
        feeds = [paddle.static.data(name, list(array.shape), "float32") for name, array in cases.items()]
        gradients = [feed * 1 for feed in feeds]
        if by_row:
            used = [(array != 0).any(1).astype(np.float32) for array in cases.values()]
            counts = [paddle.assign(rows) for rows in used]
            gradients = [RowGradient.counted(*both) for both in zip(gradients, counts, strict=True)]
        others, sums, _ = sum_gradients(gradients, [paddle.ones([2])], world)
    sums = [each.table if isinstance(each, RowGradient) else each for each in sums]
    fetched = executor.run(program, feed=cases, fetch_list=[*others, *sums])
    assert fetched[0].tolist() == [world.size] * 2
    return dict(zip(cases, fetched[1:], strict=True))


def main() -> None:
    """Run both, by row and densely."""
    world = start_world("cpu")
    # Without a store of its own, the second group of processes connects only by chance (see distributed/world.py).
    assert collective._default_store is not paddle.base.core.create_or_get_global_tcp_store()
    executor = paddle.static.Executor(world.place)
    collectives.BUCKET_NUMBERS = BUCKET_NUMBERS
    arrays: dict[str, np.ndarray] = {}
    for way in ("row", "dense"):
        arrays |= {f"{way}/{name}": array for name, array in train(executor, world, way == "row").items()}
        sums = sum_each(executor, world, way == "row")
        arrays |= {f"{way} sum/{name}": array for name, array in sums.items()}
    np.savez(Path(sys.argv[1]) / f"{world.rank}.npz", **arrays)


if __name__ == "__main__":
    main()
