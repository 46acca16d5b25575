"""The text of a prediction."""

from __future__ import annotations

from ernie_gram.planning.cluster import Cluster
from ernie_gram.planning.encoder_memory import size_text
from ernie_gram.planning.prediction import DAY, Prediction
from ernie_gram.planning.sizes import sequences_per_rank
from ernie_gram.pretraining.config import PretrainConfig
from reader.plurals import counted


def report(config: PretrainConfig, prediction: Prediction, cluster: Cluster) -> str:
    """Return the lines that the command prints; all of them are predictions."""
    shape = prediction.shape
    flops = sum(prediction.flops.values())
    shares = ", ".join(f"{name} {value / flops:.0%}" for name, value in prediction.flops.items())
    lines = [
        f"batch    {counted(config.data.batch_size, 'sequence')} on {cluster.ranks} "
        f"process{'es' * (cluster.ranks != 1)}, at most "
        f"{sequences_per_rank(config, cluster.ranks)} each{_micro_batches(prediction)}: "
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
        f"{'at least ' if prediction.waiting is None else ''}{prediction.days:,.2f} days"
        + (f", evaluations of {prediction.evaluation:,.1f} s included" if prediction.evaluation else ""),
    ]
    return "\n".join(lines)


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
