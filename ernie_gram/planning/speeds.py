"""Measure the speeds of this machine that a prediction needs and that were not given."""

from __future__ import annotations

import numpy as np
import paddle

from ernie_gram.distributed.collectives import sum_array
from ernie_gram.distributed.measure import exchange_bandwidth, matmul_peak
from ernie_gram.distributed.world import PROCESSES_ON_THIS_MACHINE, World
from ernie_gram.planning.prediction import Speeds
from ernie_gram.planning.trial_step import measured_utilisation
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes


def measure_missing(
    given: Speeds, config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape, processes: int, world: World
) -> tuple[Speeds, list[str]]:
    """Measure the speeds that are not given; return all of them, and a line about each that was measured.

    With a given peak, the share of it that a step reaches is not measured. With several processes the bandwidth is
    always measured, but a given one is used. All processes must call this together; peaks and shares are their means.

    Args:
        shape: of the batch that one process holds at a time.
        processes: number of processes that a machine will run.
    """
    (peak, utilisation, bandwidth), lines = given, []
    executor = paddle.static.Executor(world.place)

    def mean(value: float) -> float:
        return float(sum_array(executor, np.array([value]), world)[0]) / world.size

    if peak is None:
        peak = mean(matmul_peak(executor, config.optimizer.precision))
        lines.append(f"measured {_tflops(peak)} in {config.optimizer.precision} products on this machine")
        if utilisation is None:
            utilisation = mean(measured_utilisation(config, sizes, shape, peak, world))
            lines.append(f"measured {utilisation:.0%} of it in training steps of a shorter model")
        if world.place.is_cpu_place() and processes > PROCESSES_ON_THIS_MACHINE:
            peak *= PROCESSES_ON_THIS_MACHINE / processes
            lines.append(
                f"taken as {_tflops(peak)} for each of {processes} processes, which share the cores; "
                f"start this command with {processes} processes to measure them together"
            )
    if world.size > 1:
        found = exchange_bandwidth(executor, world)
        lines.append(f"measured {found / 1e9:.2f} GB/s sent by each of {world.size} processes in a sum over them")
        bandwidth = bandwidth or found
    return Speeds(peak, utilisation, bandwidth), lines


def _tflops(speed: float) -> str:
    return f"{speed / 1e12:.3f} TFLOP/s"
