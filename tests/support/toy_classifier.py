"""A job for the training loop that differs from pre-training in every part: a classifier of points in the plane."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ernie_gram.distributed.world import World  # import before Paddle: sets the number of threads

import numpy as np  # isort: skip
import paddle  # isort: skip
from paddle.nn import functional as F  # isort: skip

from ernie_gram.distributed.collectives import sum_array
from ernie_gram.model.layers import Linear
from ernie_gram.model.parameters import Normal, linear
from ernie_gram.run.checkpoint import load_model
from ernie_gram.run.run_folder import resume_checkpoint
from ernie_gram.training.config import OptimizerConfig, TrainerConfig
from ernie_gram.training.job import Feeds, Job, LossTerm, StartValues
from ernie_gram.training.optimization import learning_rate
from ernie_gram.training.program import open_program
from reader.batches.fields import Batch, Field
from reader.batches.sampler import accumulation_steps, micro_batch_rows

POINTS = Field("points", "B2", "float32", "coordinates")
CLASSES = Field("classes", "B", "int64", "0 inside the unit circle, 1 outside")
SETTINGS = OptimizerConfig(learning_rate=0.1, warmup_steps=5, weight_decay=0.0)
BATCH_SIZE = 32


def logits_of(points: paddle.Tensor) -> paddle.Tensor:
    """Return logits [B, 2] of points [B, 2]: a body of one hidden layer, and a head."""
    hidden = F.tanh(Linear(linear("body_fc", 2, 16, Normal(0.5)))(points))
    return Linear(linear("head_fc", 16, 2, Normal(0.5)))(hidden)


class ToyNetwork:
    """The network with one loss term, the cross entropy of two classes."""

    fields = (POINTS, CLASSES)

    def losses(self, feeds: Feeds) -> list[LossTerm]:
        losses = F.cross_entropy(logits_of(feeds["points"]), feeds["classes"], reduction="none")
        return [LossTerm("class", 1.0, losses.sum(), paddle.shape(losses)[0].astype("float32"))]


def samples(first: int, last: int) -> Batch:
    """Return samples first..last - 1 of an endless sequence; each sample depends only on its index."""
    points = np.array([np.random.default_rng(i).uniform(-1.5, 1.5, 2) for i in range(first, last)], np.float32)
    return {"points": points, "classes": (np.hypot(*points.T) > 1).astype(np.int64)}


def batches(
    consumed: int, world: World, steps: int = 1, bad_steps: Sequence[int] = ()
) -> Generator[list[Batch], None, None]:
    """Yield the micro-batches of each step without end; this job runs in one process.

    A point of each of `bad_steps`, counted from 0, is NaN.
    """
    assert world.size == 1
    while True:
        batch = [samples(consumed + a, consumed + b) for a, b in micro_batch_rows(BATCH_SIZE, 0, 1, steps)]
        if consumed // BATCH_SIZE in bad_steps:
            batch[0]["points"][0] = np.nan
        consumed += BATCH_SIZE
        yield batch


class ToyEvaluator:
    """Measures the accuracy on samples that training does not use."""

    def __init__(self) -> None:
        with open_program([POINTS]) as opened:
            self._program = opened.finish({"best": logits_of(opened.feeds["points"]).argmax(-1)})
        self._held_out = samples(1_000_000, 1_000_400)

    def __call__(self, executor: paddle.static.Executor, world: World) -> dict[str, float]:
        right = self._program.run(executor, self._held_out)["best"] == self._held_out["classes"]
        found, count = sum_array(executor, np.array([right.sum(), len(right)], np.float64), world)
        return {"accuracy": float(found / count)}


def toy_job(
    folder: Path,
    start: Path | None = None,
    rate_scale: dict[str, float] | None = None,
    bad_steps: Sequence[int] = (),
    selection: str | None = None,
    optimizer: OptimizerConfig = SETTINGS,
    steps: int = 120,
    **trainer: Any,
) -> Job:
    """Return the job; `start` is a checkpoint to take start values from, `trainer` has fields of TrainerConfig."""
    identity = {"toy": str(start)}
    intervals = {"log_every": 10, "eval_every": 60, "save_every": 40, "keep_checkpoints": 9}
    settings = TrainerConfig(**{"max_steps": steps, "visualdl": False, **intervals, **trainer})
    parts = accumulation_steps(BATCH_SIZE, 1, settings.micro_batch)
    return Job(
        folder=folder,
        seed=3,
        identity=identity,
        config={},
        network=ToyNetwork(),
        batch_size=BATCH_SIZE,
        batches=partial(batches, steps=parts, bad_steps=bad_steps),
        row_counts=lambda batch: [len(batch["points"])],
        evaluator=ToyEvaluator(),
        evaluates_start=selection is None,
        selection=selection,
        start_values=StartValues(str(start), partial(load_model, start), is_model=True) if start else None,
        learning_rate=partial(learning_rate, settings=optimizer, decay_steps=120),
        rate_scale=rate_scale and rate_scale.__getitem__,
        optimizer=optimizer,
        trainer=settings,
        resume_from=resume_checkpoint(folder, identity)[1],
    )
