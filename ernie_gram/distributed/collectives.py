"""Exchanges between the processes of a job: sums inside a program, and sums, copies and agreement outside of one."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import paddle
import paddle.distributed as dist

from ernie_gram.distributed.device import World
from ernie_gram.run import termination
from reader.errors import InputError

Number = TypeVar("Number", np.float32, np.float64)
# Gradients are exchanged in buckets of about this many numbers. One exchange per parameter is slow; a single exchange
# needs a copy of all gradients.
BUCKET_NUMBERS = 8 << 20
# Ranks ask each other about once in this time, and after every step if steps take longer.
EXCHANGE_SECONDS = 1.0
MAX_STEPS_BETWEEN = 1000


def plan_buckets(sizes: Iterable[int]) -> list[list[int]]:
    """Return the indices of the tensors in each bucket, in order; `sizes` are their numbers of elements.

    A bucket takes tensors until it holds more than BUCKET_NUMBERS, so its last tensor may exceed the limit.
    """
    buckets: list[list[int]] = [[]]
    numbers = 0
    for index, size in enumerate(sizes):
        if numbers > BUCKET_NUMBERS:
            buckets.append([])
            numbers = 0
        buckets[-1].append(index)
        numbers += size
    return buckets


def sum_over_ranks(tensors: list[paddle.Tensor], world: World) -> list[paddle.Tensor]:
    """Add operations to the current program that sum each tensor over all ranks; return the sums in the same order.

    The executor may run independent operations in any order, and ranks that exchange buckets in different orders would
    add up unrelated numbers. Therefore each bucket ends with a number from the bucket before it. This number is 0 in
    the first bucket, so its sum over ranks is 0 in every bucket, whatever the tensors contain. (A number of a tensor
    would grow by the factor world.size from bucket to bucket, and overflow; NaN * 0 is NaN.)
    """
    if world.size == 1 or not tensors:
        return tensors
    summed: list[paddle.Tensor] = []
    link = paddle.zeros([1], tensors[0].dtype)
    for indices in plan_buckets(int(np.prod(tensor.shape)) for tensor in tensors):
        bucket = [tensors[i] for i in indices]
        joined = paddle.concat([*(tensor.flatten() for tensor in bucket), link])
        dist.all_reduce(joined)
        link = joined[-1:]
        start = 0
        for tensor in bucket:
            size = int(np.prod(tensor.shape))
            summed.append(joined[start : start + size].reshape(tensor.shape))
            start += size
    return summed


def copy_from_first_rank(executor: paddle.static.Executor, names: list[str], world: World) -> None:
    """Set the named float32 parameters of every rank to the values of rank 0."""
    if world.size == 1:
        return
    scope = paddle.static.global_scope()
    for name in names:
        tensor = scope.find_var(name).get_tensor()
        tensor.set(of_first_rank(executor, np.array(tensor), world), executor.place)


def of_first_rank(executor: paddle.static.Executor, array: npt.NDArray[Number], world: World) -> npt.NDArray[Number]:
    """Return the array of rank 0; it has the same shape on all ranks, and any size."""
    return sum_array(executor, array if world.is_first else np.zeros_like(array), world)


def sum_array(executor: paddle.static.Executor, array: npt.NDArray[Number], world: World) -> npt.NDArray[Number]:
    """Return the sum of a host array over all ranks; it has the same shape on all ranks, and any size.

    With rows that all ranks but one leave at 0, this gathers the rows of all ranks exactly: x + 0 is x.
    """
    if world.size == 1 or not array.size:
        return array
    flat = array.ravel()
    total = np.empty_like(flat)
    for first in range(0, len(flat), BUCKET_NUMBERS):
        part = slice(first, first + BUCKET_NUMBERS)
        total[part] = _sum_on_host(executor, flat[part])
    return total.reshape(array.shape)


def check_agreement(executor: paddle.static.Executor, number: int, what: str, world: World) -> None:
    """Raise InputError unless all ranks passed the same number, for example a digest of what they are about to do."""
    total = sum_array(executor, np.array([number], np.float64), world)[0]
    if total != number * float(world.size):
        raise InputError(
            f"rank {world.rank} disagrees with the others about {what}; do all machines see the same files?"
        )


class StopAgreement:
    """Lets all ranks of a job end after the same step, although a signal may reach only one of them."""

    def __init__(self, executor: paddle.static.Executor, world: World, step: int) -> None:
        """`step` is that from which training starts or resumes."""
        self._executor, self._world = executor, world
        self._last_step = self._next_step = step
        self._time = time.monotonic()

    def signal_after(self, step: int) -> int | None:
        """Return the signal after which all ranks end at this step, the same on all ranks, or None to go on.

        Every rank calls it after every step. Most calls return None without an exchange.
        """
        if self._world.size == 1:
            return termination.requested()
        return self.signal_now(step) if step >= self._next_step else None

    def signal_now(self, step: int) -> int | None:
        """Return the signal after which all ranks end now, or None; always exchanges."""
        number, now = termination.requested(), time.monotonic()
        own = [*(number == each for each in termination.SIGNALS), now - self._time]
        *asked, seconds = sum_array(self._executor, np.array(own, np.float64), self._world)
        # The sums are those of all ranks, so all of them compute the same next step.
        steps, mean = max(1, step - self._last_step), max(1e-6, seconds / self._world.size)
        self._next_step = step + int(np.clip(EXCHANGE_SECONDS * steps / mean, 1, MAX_STEPS_BETWEEN))
        self._last_step, self._time = step, now
        return next((each for each, times in zip(termination.SIGNALS, asked, strict=True) if times), None)


def _sum_on_host(executor: paddle.static.Executor, flat: np.ndarray) -> np.ndarray:
    """Return the sum of an array of one axis over all ranks.

    An executor keeps each program with its last feed and fetch, so there are few programs: for powers of two.
    """
    size = 1 << (len(flat) - 1).bit_length()
    program, total = _sum_program(size, str(flat.dtype))
    padded = np.pad(flat, (0, size - len(flat)))
    return executor.run(program, feed={"value": padded}, fetch_list=[total])[0][: len(flat)]


@cache
def _sum_program(size: int, dtype: str) -> tuple[paddle.static.Program, paddle.Tensor]:
    """Return a program that sums the feed `value`, of one axis, over all ranks, and the sum."""
    program = paddle.static.Program()
    with paddle.static.program_guard(program, paddle.static.Program()), paddle.utils.unique_name.guard():
        value = paddle.static.data("value", [size], dtype)
        total = value * 1  # all_reduce works in place, and must not change a feed
        dist.all_reduce(total)
    return program, total
