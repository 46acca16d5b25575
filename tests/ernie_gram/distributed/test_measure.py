"""What is measured of a machine and of a process. Exchanges are measured in the tests of the launcher."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from ernie_gram.distributed import measure
from tests.support.static_programs import fresh_scope


def test_the_slower_first_products_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    # As seen in 0.3 s on two cores, in which there were only two runs.
    runs = iter([0.253, 0.099, 0.061, 0.060, 0.062, 0.059])
    monkeypatch.setattr(measure.timeit, "timeit", lambda run, number: next(runs))
    with fresh_scope() as executor:
        peak = measure.matmul_peak(executor, "float32", seconds=0.0)
        assert peak == pytest.approx(2 * 2 * measure.ROWS * measure.SIZE_IN * measure.SIZE_OUT / 0.059)
        monkeypatch.undo()
        assert measure.matmul_peak(executor, "float32", seconds=0.0) > 1e8


def test_the_peak_memory_of_the_process_is_at_least_what_it_has() -> None:
    has = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    assert has <= measure.process_peak() <= 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1.01
