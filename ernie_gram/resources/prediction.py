"""Predict memory, disk space and time of a run on several processes, and report the prediction."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.catalog import recomputed_flops, step_flops
from ernie_gram.resources.memory import Bytes, step_memory
from reader.batches.sampler import accumulation_steps, largest_share
from reader.errors import counted

DAY = 24 * 60 * 60.0


class Prediction(NamedTuple):
    """What a process needs, in bytes, and in the operations of a step.

    It holds `shape` at a time, in `steps` micro-batches of a step. `disk` is that of all checkpoints, with the one that
    is written before the oldest is removed.
    """

    shape: BatchShape
    steps: int
    memory: Bytes
    flops: float
    checkpoint: float
    disk: float


def predict(config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape, ranks: int, cpu: bool = False) -> Prediction:
    """Return the prediction for `ranks` processes that hold `shape` at a time, on GPUs or on CPUs."""
    trainer, whole = config.trainer, config.data.batch_size
    steps = accumulation_steps(whole, ranks, trainer.micro_batch)
    memory = step_memory(config, sizes, shape, cpu, steps)
    computed = shape.computed(cpu)
    flops = step_flops(config, sizes, computed) + recomputed_flops(config, computed)
    # Micro-batches differ by at most one sequence.
    flops *= largest_share(whole, ranks) / shape.sequences
    checkpoint = memory["parameters"] + memory["Adam's moments"]
    disk = checkpoint * min(trainer.keep_checkpoints + 1, -(-trainer.max_steps // trainer.save_every))
    return Prediction(shape, steps, memory, flops, checkpoint, disk)


def report(config: PretrainConfig, prediction: Prediction, ranks: int, peak: float, utilisation: float) -> str:
    """Return the lines that the command prints; all of them are predictions.

    `peak` is that of a process in operations per second, `utilisation` the share of it that a step reaches.
    """
    shape, batch_size = prediction.shape, config.data.batch_size
    micro = f" in {prediction.steps} micro-batches of at most {shape.sequences}" if prediction.steps > 1 else ""
    queries = f", {shape.fine:.1f} query rows" if shape.queries else ""
    padding = f"; {shape.padding:.0%} padding" if shape.padding else ""
    parts = ", ".join(f"{name} {size_text(size)}" for name, size in prediction.memory.items())
    seconds = prediction.flops / (peak * utilisation)
    duration = timedelta(minutes=round(seconds * config.trainer.max_steps / 60))
    return (
        f"batch    {counted(batch_size, 'sequence')} on {ranks} process{'es' * (ranks != 1)}, at most "
        f"{largest_share(batch_size, ranks)} each{micro}: {shape.slots} slots, {shape.predicted:.1f} predicted"
        f"{queries}{padding}\n"
        f"memory   {size_text(sum(prediction.memory.values()))} per process: {parts}\n"
        f"disk     {size_text(prediction.checkpoint)} per checkpoint, at most {size_text(prediction.disk)}\n"
        f"step     {seconds:.3f} s: {_operations(prediction.flops)} per process at {utilisation:.0%} of "
        f"{_operations(peak)}/s, and the exchange between processes\n"
        f"time     at least {duration} for {counted(config.trainer.max_steps, 'step')}, {DAY / seconds:,.0f} per day"
    )


def size_text(size: float) -> str:
    """Return a number of bytes in GB or MB."""
    return f"{size / 1e9:,.2f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"


def _operations(number: float) -> str:
    return f"{number / 1e12:,.2f} TFLOP" if number >= 1e11 else f"{number / 1e9:,.1f} GFLOP"
