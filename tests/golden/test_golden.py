"""The golden runs: every rung's losses and parameters are what they were when they were recorded."""

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
# Another kind of machine rounds differently, and each step builds on the one before.
TOLERANCE = 2e-3


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What this checkout computes now. In a process of its own: the number of threads is fixed as Paddle loads."""
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
def test_a_rung_computes_what_it_did(found: dict[str, Any], name: str) -> None:
    run = found["runs"][name]
    recorded = EXPECTED["runs"].get(machine())
    if recorded is not None:
        assert run == recorded[name]  # to the bit
        return
    # Not recorded on this kind of machine (see the head of train_rungs.py): the same within rounding.
    reference = next(iter(EXPECTED["runs"].values()))[name]
    assert len(run["records"]) == len(reference["records"])
    for record, other in zip(run["records"], reference["records"], strict=True):
        accuracies = record.pop("accuracy", None), other.pop("accuracy", None)
        assert accuracies[0] == pytest.approx(accuracies[1], abs=0.05)
        assert record == pytest.approx(other, rel=TOLERANCE), name


def test_every_rung_is_recorded() -> None:
    assert EXPECTED["runs"]
    for runs in EXPECTED["runs"].values():
        assert list(runs) == [*RUNGS, *VARIANTS]
        assert len({run["parameters"] for run in runs.values()}) == len(runs)
