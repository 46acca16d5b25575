"""Predict memory, exchanged bytes, disk space and time of a run on a cluster, and report the prediction."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from datetime import timedelta
from functools import partial
from math import prod
from typing import NamedTuple

from ernie_gram.distributed.collectives import is_summed_by_row
from ernie_gram.model.parameters import count
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.network import parameter_shapes
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.catalog import recomputed_flops, sparse_parameters, step_flops
from ernie_gram.resources.memory import FLOAT, Bytes, step_memory
from reader.batches.sampler import accumulation_steps, largest_share
from reader.errors import counted

DAY = 24 * 60 * 60.0
MOST_SEQUENCES = 1 << 30


class Cluster(NamedTuple):
    """The processes that a run is planned for: what each has of memory, operations and sent bytes per second.

    A step reaches `utilisation` of the `peak`. None is unknown. `cpu` is whether they compute on CPUs.
    """

    ranks: int
    peak: float
    utilisation: float
    memory: float | None = None
    bandwidth: float | None = None
    cpu: bool = False


class Prediction(NamedTuple):
    """What a process needs, in bytes, operations and seconds.

    It holds `shape` at a time, in `steps` micro-batches of a step; `fitting` sequences would fit. Nothing is computed
    while it waits for the exchange. None is unknown. `disk` is that of all checkpoints, with the one that is written
    before the oldest is removed. `days` are those of all steps; evaluations take time beside.
    """

    shape: BatchShape
    steps: int
    memory: Bytes
    fitting: int | None
    flops: float
    exchanged: float
    rows: float
    compute: float
    waiting: float | None
    checkpoint: float
    disk: float
    days: float


def predict(config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape, cluster: Cluster) -> Prediction:
    """Return the prediction for processes that hold `shape` at a time."""
    ranks, rate, trainer = cluster.ranks, cluster.peak * cluster.utilisation, config.trainer
    steps, whole = accumulation_steps(config.data.batch_size, ranks, trainer.micro_batch), config.data.batch_size
    memory = step_memory(config, sizes, shape, cluster.cpu, steps)
    computed = shape.computed(cluster.cpu)
    flops = step_flops(config, sizes, computed) + recomputed_flops(config, computed)
    # Micro-batches differ by at most one sequence.
    flops *= largest_share(whole, ranks) / shape.sequences
    compute, (exchanged, rows) = flops / rate, step_exchange(config, sizes, shape, ranks)
    # In a ring, a process sends 2 (ranks - 1) / ranks times the bytes of the tensors.
    sent = 2 * (ranks - 1) / ranks * exchanged
    waiting = sent / cluster.bandwidth if cluster.bandwidth else None if sent else 0.0
    checkpoint = memory["parameters"] + memory["Adam's moments"]
    disk = checkpoint * min(trainer.keep_checkpoints + 1, -(-trainer.max_steps // trainer.save_every))
    fitting = fitting_sequences(config, sizes, shape, cluster)
    days = (compute + (waiting or 0.0)) * trainer.max_steps / DAY
    of_step = (flops, exchanged, rows, compute, waiting)
    return Prediction(shape, steps, memory, fitting, *of_step, checkpoint, disk, days)


def step_exchange(config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape, ranks: int) -> tuple[float, float]:
    """Return the bytes that a step sums over processes, and how many rows of the n-gram embedding are among them.

    If the embedding is large, these are the rows that a batch is expected to use (see row_gradients.py).
    """
    if ranks == 1:
        return 0.0, 0.0
    shapes, sparse = parameter_shapes(config, sizes), sparse_parameters(config)
    tables = [each for name, each in shapes.items() if name in sparse and is_summed_by_row(prod(each))]
    # A sample per masked slot of the whole batch. The use of each row is exchanged too.
    rows = sizes.expected_ngrams(shape.predicted * config.data.batch_size) if tables else 0.0
    numbers = count(shapes) + sum(all_rows + (rows - all_rows) * width for all_rows, width in tables)
    return FLOAT * numbers, rows


def fitting_sequences(config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape, cluster: Cluster) -> int | None:
    """Return how many sequences the memory of a process holds at a time; None if it is unknown.

    They fit beside accumulated gradients, unless they are its whole share of a batch.
    """
    if cluster.memory is None:
        return None

    def memory(sequences: int, steps: int) -> float:
        held = replace(shape, sequences=sequences)
        return sum(step_memory(config, sizes, held, cluster.cpu, steps).values())

    numbers = range(1, MOST_SEQUENCES)
    whole = bisect_right(numbers, cluster.memory, key=partial(memory, steps=1))
    is_enough = whole >= largest_share(config.data.batch_size, cluster.ranks)
    return whole if is_enough else bisect_right(numbers, cluster.memory, key=partial(memory, steps=2))


def warnings(
    config: PretrainConfig, sizes: CorpusSizes, prediction: Prediction, cluster: Cluster, free_disk: int
) -> list[str]:
    """Return a line for a batch that does not fit the memory, and one for checkpoints that do not fit the disk."""
    lines, held, fitting = [], prediction.shape.sequences, prediction.fitting
    if cluster.memory is not None and fitting is not None and fitting < held:
        advice = f"with trainer.micro_batch {fitting} it fits" if fitting else "not even one fits"
        recomputing = replace(config, trainer=replace(config.trainer, recompute=True))
        more = fitting_sequences(recomputing, sizes, prediction.shape, cluster) or 0
        if more > fitting:
            advice += f", with trainer.recompute true {counted(more, 'sequence')} would"
        need = f"{size_text(sum(prediction.memory.values()))} of {size_text(cluster.memory)}"
        lines.append(f"trainer.micro_batch: {held} sequences at a time need {need}; {advice}")
    if prediction.disk > free_disk:
        lines.append(
            f"paths.output: the checkpoints take up to {size_text(prediction.disk)}, but only {size_text(free_disk)} "
            "are free; lower trainer.keep_checkpoints, or choose another disk"
        )
    return lines


def report(config: PretrainConfig, prediction: Prediction, cluster: Cluster) -> str:
    """Return the lines that the command prints; all of them are predictions."""
    shape, batch_size = prediction.shape, config.data.batch_size
    micro = f" in {prediction.steps} micro-batches of at most {shape.sequences}" if prediction.steps > 1 else ""
    queries = f", {shape.fine:.1f} query rows" if shape.queries else ""
    padding = f"; {shape.padding:.0%} padding" if shape.padding else ""
    parts = ", ".join(f"{name} {size_text(size)}" for name, size in prediction.memory.items())
    fitting, waiting, at_least = "", "", ""
    if cluster.memory is not None and prediction.fitting is not None:
        number = counted(prediction.fitting, "sequence")
        fitting = f"\n         {size_text(cluster.memory)} hold {number} at a time at most"
    if prediction.waiting is None:
        waiting, at_least = ", and the exchange: give --bandwidth", "at least "
    elif cluster.bandwidth and cluster.ranks > 1:
        waiting = f", and {prediction.waiting:.3f} s for the exchange at {size_text(cluster.bandwidth)}/s"
    duration = timedelta(minutes=round(24 * 60 * prediction.days))
    rows = f", {prediction.rows:,.0f} rows of n-grams included" if prediction.rows else ""
    return (
        f"batch    {counted(batch_size, 'sequence')} on {cluster.ranks} process{'es' * (cluster.ranks != 1)}, at most "
        f"{largest_share(batch_size, cluster.ranks)} each{micro}: {shape.slots} slots, {shape.predicted:.1f} predicted"
        f"{queries}{padding}\n"
        f"memory   {size_text(sum(prediction.memory.values()))} per process: {parts}\n"
        f"         process 0 needs {size_text(prediction.checkpoint)} of main memory more while it writes a checkpoint"
        f"{fitting}\n"
        f"compute  {_operations(prediction.flops)} per process and step\n"
        f"step     {prediction.compute:.3f} s at {cluster.utilisation:.0%} of {_operations(cluster.peak)}/s{waiting}\n"
        f"exchange {size_text(prediction.exchanged)} per step{rows}\n"
        f"disk     {size_text(prediction.checkpoint)} per checkpoint, at most {size_text(prediction.disk)}\n"
        f"time     {DAY / (prediction.compute + (prediction.waiting or 0.0)):,.0f} steps per day, "
        f"{counted(config.trainer.max_steps, 'step')} in {at_least}{duration}"
    )


def size_text(size: float) -> str:
    """Return a number of bytes in GB or MB."""
    return f"{size / 1e9:,.2f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"


def _operations(number: float) -> str:
    return f"{number / 1e12:,.2f} TFLOP" if number >= 1e11 else f"{number / 1e9:,.1f} GFLOP"
