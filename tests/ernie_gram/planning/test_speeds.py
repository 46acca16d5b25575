"""Which speeds are measured, and how the processes agree on them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from ernie_gram.distributed.world import World, start_world
from ernie_gram.planning.prediction import Speeds
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from tests.support.small_model import config_of

NOTHING = Speeds()


def measure(
    given: Speeds, monkeypatch: pytest.MonkeyPatch, size: int = 1, processes: int = 1
) -> tuple[Speeds, list[str]]:
    """Call measure_missing on a machine with a peak of 2 TFLOP/s, of which steps reach 40 %; of `size` processes, the
    others measure half of each, and send 3 GB/s."""
    from ernie_gram.planning import speeds

    def sum_array(executor: object, values: npt.NDArray[np.float64], world: World) -> npt.NDArray[np.float64]:
        return values + (world.size - 1) * values / 2

    monkeypatch.setattr(speeds, "sum_array", sum_array)
    monkeypatch.setattr(speeds, "matmul_peak", lambda executor, precision: 2e12)
    monkeypatch.setattr(speeds, "measured_utilisation", lambda config, sizes, shape, peak, world: 0.4)
    monkeypatch.setattr(speeds, "exchange_bandwidth", lambda executor, world: 3e9)
    monkeypatch.setattr(speeds, "PROCESSES_ON_THIS_MACHINE", size)
    world = World(0, size, start_world("cpu").place)
    shape = BatchShape(6, 20, 3.4, 5, 4.6)
    return speeds.measure_missing(given, config_of("both"), CorpusSizes(120, 36), shape, processes, world)


def test_one_process_measures_its_peak_and_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measure(NOTHING, monkeypatch)[0] == Speeds(2e12, 0.4, None)


def test_two_processes_take_their_means_and_measure_the_bandwidth(monkeypatch: pytest.MonkeyPatch) -> None:
    found, lines = measure(NOTHING, monkeypatch, size=2, processes=2)
    assert found == Speeds(1.5e12, pytest.approx(0.3), 3e9)
    assert [line.split(" in ")[0] for line in lines] == [
        "measured 1.500 TFLOP/s",
        "measured 30% of it",
        "measured 3.00 GB/s sent by each of 2 processes",
    ]


def test_processes_that_are_not_running_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    found, lines = measure(NOTHING, monkeypatch, processes=4)
    assert found == Speeds(0.5e12, 0.4, None)
    assert lines[-1].startswith("taken as 0.500 TFLOP/s for each of 4 processes")


def test_given_speeds_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Speeds(9e12, None, 1e9)
    assert measure(given, monkeypatch) == (given, [])
    assert measure(given, monkeypatch, size=2, processes=2)[0] == given
    assert measure(Speeds(None, 0.7, None), monkeypatch, size=2, processes=2)[0] == Speeds(1.5e12, 0.7, 3e9)
