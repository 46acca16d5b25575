"""Predict memory, disk space, exchanged bytes and time of a run on a cluster, and report the prediction."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from ernie_gram.planning.encoder_memory import Memory, size_text
from ernie_gram.planning.exchange import Exchange, checkpoint_bytes, checkpoints_on_disk, step_exchange
from ernie_gram.planning.memory import rank_memory
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.catalog import evaluation_flops, recomputed_flops, step_flops
from reader.batches.sampler import accumulation_steps, largest_share
from reader.errors import counted

DAY = 24 * 60 * 60.0


class Speeds(NamedTuple):
    """Speeds of one process, as in Cluster; None where they are unknown."""

    peak: float | None = None
    utilisation: float | None = None
    bandwidth: float | None = None


@dataclass(frozen=True)
class Cluster:
    """The cluster that a run is planned for.

    Attributes:
        ranks: number of processes, one per GPU.
        memory: bytes of memory per process; None if unknown.
        peak: operations per second that a device reaches in large matrix products.
        utilisation: share of the peak that a step reaches, without the exchanges.
        bandwidth: bytes per second that one process sends; None if unknown.
        cpu: whether the processes compute on CPUs.
    """

    ranks: int
    peak: float
    utilisation: float
    memory: float | None = None
    bandwidth: float | None = None
    cpu: bool = False


@dataclass(frozen=True)
class Prediction:
    """What a run will need.

    Attributes:
        shape: of the batch that one process holds at a time.
        steps: number of micro-batches of a step.
        memory: of one process.
        fitting: largest number of sequences that the memory of a process holds at a time, beside accumulated gradients
            unless its whole share of the batch fits; None if the memory is unknown.
        flops: operations of a step of one process, by part.
        exchange: sums over processes in a step.
        compute: seconds of a step without the exchanges.
        waiting: seconds of the exchanges of a step, during which nothing is computed; None if unknown.
        evaluation: seconds of an evaluation; 0 without a held-out corpus.
        checkpoint: bytes of a checkpoint.
        disk: bytes of all checkpoints, including the one that is being written.
        days: from the first to the last step, with evaluations.
    """

    shape: BatchShape
    steps: int
    memory: Memory
    fitting: int | None
    flops: dict[str, float]
    exchange: Exchange
    compute: float
    waiting: float | None
    evaluation: float
    checkpoint: int
    disk: int
    days: float

    @property
    def step(self) -> float:
        """Seconds of a step; without the exchanges if their time is unknown."""
        return self.compute + (self.waiting or 0.0)


def predict(
    config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape, cluster: Cluster, held_out: int | None = None
) -> Prediction:
    """Return the prediction for processes of a cluster that hold batches of `shape` at a time.

    Args:
        shape: its `sequences` is config.largest_micro_batch of the number of processes.
        held_out: number of held-out sequences; None if unknown, and then at least trainer.eval_sequences are assumed.
    """
    rate, ranks, trainer = cluster.peak * cluster.utilisation, cluster.ranks, config.trainer
    steps = accumulation_steps(config.data.batch_size, ranks, trainer.micro_batch)
    # Micro-batches differ by at most one sequence.
    share = 1.0 if steps == 1 else largest_share(config.data.batch_size, ranks) / shape.sequences
    computed = shape.computed(cluster.cpu)
    flops = step_flops(config, sizes, computed)
    if trainer.recompute:
        flops["recompute"] = recomputed_flops(config, computed)
    flops = {part: share * number for part, number in flops.items()}
    compute = sum(flops.values()) / rate
    exchange = step_exchange(config, sizes, shape, ranks)
    waiting = exchange.sent(ranks) / cluster.bandwidth if cluster.bandwidth else 0.0 if ranks == 1 else None
    evaluation = 0.0
    if config.paths.held_out:
        # Held-out batches have no query rows, see `feeders`.
        computed = replace(shape, queries=0, fine=0.0).computed(cluster.cpu)
        forward = sum(evaluation_flops(config, sizes, computed).values()) / shape.sequences
        draws = trainer.eval_draws if config.objective.has_generator else 1
        sequences = trainer.eval_sequences if held_out is None else min(trainer.eval_sequences, held_out)
        evaluation = draws * forward * -(-sequences // ranks) / rate
    evaluations = 1 + -(-trainer.max_steps // trainer.eval_every)
    checkpoint = checkpoint_bytes(config, sizes)
    return Prediction(
        shape=shape,
        steps=steps,
        memory=rank_memory(config, sizes, shape, ranks, cluster.cpu),
        fitting=fitting_sequences(config, sizes, shape, cluster),
        flops=flops,
        exchange=exchange,
        compute=compute,
        waiting=waiting,
        evaluation=evaluation,
        checkpoint=checkpoint,
        disk=checkpoint * checkpoints_on_disk(config),
        days=((compute + (waiting or 0.0)) * trainer.max_steps + evaluation * evaluations) / DAY,
    )


def fitting_sequences(config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape, cluster: Cluster) -> int | None:
    """Return the largest number of sequences that fit, see Prediction.fitting."""
    if cluster.memory is None:
        return None

    def memory(sequences: int, steps: int) -> int:
        """Return the memory of a process that holds `sequences`, and has `steps` times as many in a batch."""
        scaled = replace(
            config,
            data=replace(config.data, batch_size=steps * sequences * cluster.ranks),
            trainer=replace(config.trainer, micro_batch=sequences),
        )
        return rank_memory(scaled, sizes, replace(shape, sequences=sequences), cluster.ranks, cluster.cpu).total

    whole = largest_batch(partial(memory, steps=1), cluster.memory)
    is_enough = whole >= largest_share(config.data.batch_size, cluster.ranks)
    return whole if is_enough else largest_batch(partial(memory, steps=2), cluster.memory)


def largest_batch(memory: Callable[[int], int], limit: float) -> int:
    """Return the largest number of sequences whose memory is within `limit`, 0 if not even one fits.

    `memory` must not decrease with the number of sequences.
    """
    too_many = 1
    while memory(too_many) <= limit:
        too_many *= 2
    return bisect_right(range(1, too_many), limit, lo=too_many // 2, key=memory)


def report(config: PretrainConfig, prediction: Prediction, cluster: Cluster) -> str:
    """Return the lines that the command prints; all of them are predictions."""
    shape = prediction.shape
    flops = sum(prediction.flops.values())
    shares = ", ".join(f"{name} {value / flops:.0%}" for name, value in prediction.flops.items())
    lines = [
        f"batch    {counted(config.data.batch_size, 'sequence')} on {cluster.ranks} "
        f"process{'es' * (cluster.ranks != 1)}, at most "
        f"{largest_share(config.data.batch_size, cluster.ranks)} each{_micro_batches(prediction)}: "
        f"{shape.slots} slots, {shape.predicted:.1f} predicted"
        + (f", {shape.fine:.1f} query rows" if shape.queries else "")
        + (f"; {shape.padding:.0%} padding" if shape.padding else ""),
        f"memory   {prediction.memory.describe()}",
        f"         process 0 needs {size_text(prediction.checkpoint)} of main memory more while it writes a checkpoint",
        *_fitting(prediction, cluster),
        f"compute  {_operations(flops)} per process and step: {shares}",
        f"step     {prediction.compute:.3f} s at {cluster.utilisation:.0%} of {_operations(cluster.peak)}/s"
        + _waiting(prediction, cluster),
        f"exchange {size_text(prediction.exchange.bytes)} per step in {counted(prediction.exchange.sums, 'sum')}"
        + (f", {prediction.exchange.rows:,.0f} rows of n-grams included" if prediction.exchange.rows else ""),
        f"disk     {size_text(prediction.checkpoint)} per checkpoint, at most {size_text(prediction.disk)}",
        f"time     {DAY / prediction.step:,.0f} steps per day, {counted(config.trainer.max_steps, 'step')} in "
        f"{'at least ' if prediction.waiting is None else ''}{_duration(prediction.days)}"
        + (f", evaluations of {prediction.evaluation:,.1f} s included" if prediction.evaluation else ""),
    ]
    return "\n".join(lines)


def _duration(days: float) -> str:
    hours = 24 * days
    if hours < 1:
        return f"{60 * hours:.1f} minutes"
    return f"{hours:.1f} hours" if days < 1 else f"{days:,.2f} days"


def _operations(number: float) -> str:
    return f"{number / 1e12:,.2f} TFLOP" if number >= 1e11 else f"{number / 1e9:,.1f} GFLOP"


def _fitting(prediction: Prediction, cluster: Cluster) -> list[str]:
    if prediction.fitting is None or cluster.memory is None:
        return []
    return [f"         {size_text(cluster.memory)} hold {counted(prediction.fitting, 'sequence')} at a time at most"]


def _micro_batches(prediction: Prediction) -> str:
    if prediction.steps == 1:
        return ""
    return f" in {prediction.steps} micro-batches of at most {prediction.shape.sequences}"


def _waiting(prediction: Prediction, cluster: Cluster) -> str:
    if prediction.waiting is None:
        return ", and the exchange: give --bandwidth, or start several processes to measure it"
    if cluster.ranks == 1 or cluster.bandwidth is None:
        return ""
    return f", and {prediction.waiting:.3f} s for the exchange at {size_text(cluster.bandwidth)}/s"
