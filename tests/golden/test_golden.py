"""The golden runs: the losses and parameters of every rung equal the recorded ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.golden.train_rungs import GOLDEN, RUNGS, VARIANTS, machine
from tests.support.commands import ROOT

# All in one test process: they share a fixture that takes long to set up.
pytestmark = pytest.mark.xdist_group("golden")

EXPECTED = json.loads(GOLDEN.read_text())
# Another kind of machine rounds differently, and rounding errors grow from step to step.
TOLERANCE = 2e-3


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What this checkout computes, in a separate process, because the number of threads is fixed when Paddle loads."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.golden.train_rungs", str(tmp_path_factory.mktemp("golden"))],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_lexicon_and_corpora_are_the_same_on_every_machine(found: dict[str, Any]) -> None:
    assert found["corpora"] == EXPECTED["corpora"]


@pytest.mark.parametrize("name", [*RUNGS, *VARIANTS])
def test_a_rung_reproduces_its_recorded_results(found: dict[str, Any], name: str) -> None:
    run = found["runs"][name]
    recorded = EXPECTED["runs"].get(machine())
    if recorded is not None:
        assert run == recorded[name]  # bit for bit
        return
    # Without a record for this kind of machine (see train_rungs.py), results may differ by rounding.
    reference = next(iter(EXPECTED["runs"].values()))[name]
    assert len(run["records"]) == len(reference["records"])
    for record, other in zip(run["records"], reference["records"], strict=True):
        accuracies = record.pop("accuracy", None), other.pop("accuracy", None)
        assert accuracies[0] == pytest.approx(accuracies[1], abs=0.05)
        assert record == pytest.approx(other, rel=TOLERANCE), name


def test_every_rung_is_recorded_and_no_two_are_equal() -> None:
    assert EXPECTED["runs"]
    for runs in EXPECTED["runs"].values():
        assert list(runs) == [*RUNGS, *VARIANTS]
        assert len({run["parameters"] for run in runs.values()}) == len(runs)
