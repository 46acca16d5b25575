"""The meters of a training: what they are computed from, what is left out, and what the console shows."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import paddle

from ernie_gram.distributed.world import World
from ernie_gram.run.run_log import CPU, METERS
from ernie_gram.training.config import TrainerConfig
from ernie_gram.training.meters import Meters, process_peak, rates
from reader.batches.fields import Batch
from tests.support.static_programs import fresh_scope


def batch(*lengths: int) -> dict[str, np.ndarray]:
    """Return a batch of sequences of these lengths."""
    return {"input_ids": np.ones((len(lengths), max(lengths)), np.int64), "lengths": np.array(lengths)}


def meters_of(executor: paddle.static.Executor, flops: Callable[[Batch], float] | None, **trainer: float) -> Meters:
    """Return the meters of one process."""
    job: Any = SimpleNamespace(trainer=TrainerConfig(**trainer))  # type: ignore[arg-type]
    job.flops = flops
    return Meters(job, executor, World(0, 1, executor.place))


def test_the_rates_of_two_processes_are_those_of_the_whole_job() -> None:
    """The second process waited longer."""
    rows = [[5.0, 0.0, 28.0, 32.0, 3200.0, 1000.0], [5.0, 0.5, 28.0, 32.0, 3200.0, 3000.0]]
    found = rates(np.array(rows), sequences=8)
    assert found == {
        "sequences_per_second": 8 / 5,
        "tokens_per_second": 2 * 28 / 5,
        "slots_per_second": 2 * (20 + 12) / 5,
        "mfu": 2 * 3200 / (5 * 4000),
        "feed_wait_share": 0.5 / 5,
    }
    assert list(found) == [name for name in METERS if "_gb" not in name and name != CPU]


def test_meters_start_anew_after_each_log_line_and_leave_out_what_is_unknown() -> None:
    """As in a job without the fields of sequences and known operations, or where only the peak is unknown."""
    with fresh_scope() as executor:
        meters = meters_of(executor, None)
        meters.add([{"points": np.ones((4, 2))}], 0.0, 2.0)
        found = meters.take(batch_size=4)
        assert found["sequences_per_second"] == 2.0
        assert not found.keys() & {"tokens_per_second", "slots_per_second", "mfu"}
        unknown = meters_of(executor, lambda _: 1e12)
        unknown.add([batch(4, 2)], waiting=1.0, seconds=8.0)
        assert "mfu" not in unknown.take(batch_size=2)
        meters = meters_of(executor, lambda _: 1e12, peak_tflops=0.5)
        for _ in range(4):
            meters.add([batch(4, 2)], waiting=1.0, seconds=8.0, cpu=3.0)
        first = meters.take(batch_size=2)
        meters.add([batch(4, 1), batch(1)], waiting=0.0, seconds=4.0)  # in two micro-batches
        second = meters.take(batch_size=2)
    assert [first[name] for name in METERS[:5]] == [0.25, 0.75, 1.0, 0.25, 0.125]
    assert [second[name] for name in METERS[:5]] == [0.5, 1.5, 2.25, 1.0, 0.0]
    assert (first[CPU], second[CPU]) == (3.0, 0.0)
    assert 0.05 < second["peak_memory_gb"] < 64
    assert second["peak_allocated_gb"] <= second["peak_memory_gb"]


def test_the_peak_memory_of_the_process_is_at_least_what_it_has() -> None:
    has = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    assert has <= process_peak() <= 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1.01
