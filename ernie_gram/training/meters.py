"""Measure the speed of a training and what limits it: rates, utilisation, waiting and memory.

Each process counts its own share of the batches; at a log line the counts of all processes are gathered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import paddle

from ernie_gram.distributed.collectives import sum_array
from ernie_gram.distributed.device import World
from ernie_gram.paddle_private import host_peak
from ernie_gram.run.run_log import ALLOCATED, CPU, MEMORY, RATE, SLOTS, TOKENS, UTILISATION, WAIT
from ernie_gram.training.job import Job
from reader.batches.fields import INPUT_IDS, LENGTHS, Batch


def rates(counts: npt.NDArray[np.float64], sequences: int) -> dict[str, float]:
    """Return the meters of some steps, without the memory. What is unknown is left out.

    Args:
        counts: one row per process, float64 [ranks, 6]: seconds of the steps, with the waiting; seconds of waiting for
            batches; context slots that are not padding; context slots; floating-point operations of the matrix
            products, with those of padding; the peak in operations per second, 0 if unknown.
        sequences: number of sequences of these steps, all processes together.

    feed_wait_share is that of the process that waited longest: the others wait for it in the exchange.
    """
    seconds, waiting, tokens, slots, flops, peaks = counts.T
    longest = float(seconds.max())
    found = {RATE: sequences / longest}
    if slots.any():
        found |= {TOKENS: float(tokens.sum()) / longest, SLOTS: float(slots.sum()) / longest}
    if flops.any() and peaks.all():
        found[UTILISATION] = float(flops.sum()) / (longest * float(peaks.sum()))
    found[WAIT] = float((waiting / seconds).max())
    return found


class Meters:
    """The meters of a running training."""

    def __init__(self, job: Job, executor: paddle.static.Executor, world: World) -> None:
        """Start with no steps; the utilisation is known if the operations of a batch and the peak of the device are."""
        self._flops, self._executor, self._world = job.flops, executor, world
        self._peak = (job.trainer.peak_tflops or 0.0) * 1e12
        self._start_anew()

    def _start_anew(self) -> None:
        self._counts, self._steps, self._cpu = np.zeros(5), 0, 0.0

    def add(self, batches: Sequence[Batch], waiting: float, seconds: float, cpu: float = 0.0) -> None:
        """Count a step of this process that took `seconds`, `waiting` of them for its batches.

        `cpu` is the CPU time of all threads of the process in this step; other work on the machine hardly changes it.
        """
        own = [batch for batch in batches if INPUT_IDS.name in batch and LENGTHS.name in batch]
        tokens = sum(batch[LENGTHS.name].sum() for batch in own)
        slots = sum(batch[INPUT_IDS.name].size for batch in own)
        flops = sum(self._flops(batch) for batch in batches) if self._flops else 0.0
        self._counts += seconds, waiting, tokens, slots, flops
        self._steps, self._cpu = self._steps + 1, self._cpu + cpu

    def take(self, batch_size: int) -> dict[str, float]:
        """Return the meters of the steps since the last call, on all ranks; it is an exchange between them.

        `batch_size` is the number of sequences of a step. The memory and the CPU time are those of this process.
        """
        world, steps = self._world, self._steps
        vector = np.append(self._counts, self._peak)
        rows = np.zeros((world.size, len(vector)))
        rows[world.rank] = vector
        counts = sum_array(self._executor, rows, world)
        spent = {CPU: self._cpu / max(1, steps)}
        self._start_anew()
        memory = {MEMORY: process_peak() / 1e9, ALLOCATED: allocated_peak(world) / 1e9}
        return rates(counts, steps * batch_size) | spent | memory


def allocated_peak(world: World) -> int:
    """Return the largest number of bytes that Paddle has allocated at one time on this process's device."""
    if world.place.is_gpu_place():
        return int(paddle.device.cuda.max_memory_allocated(world.place))
    return host_peak()


def process_peak() -> int:
    """Return the largest number of bytes of main memory that this process has had."""
    # Not with getrusage, which may return the peak of the process that started this one.
    return 1024 * int(re.findall(r"^VmHWM:\s*(\d+)", Path("/proc/self/status").read_text(), re.MULTILINE)[0])
