"""The objectives of the ablation's rungs, from conf/ablation."""

from __future__ import annotations

from tests.support.configs import load
from tests.support.rungs import CONFIGS, RUNGS

OBJECTIVES = {rung: load("--config", str(CONFIGS / f"{rung}.yaml")).objective for rung in RUNGS}


def as_options(rung: str) -> list[str]:
    """Return a rung's objective as command-line options."""
    return [f"--objective.{key}={value}" for key, value in vars(OBJECTIVES[rung]).items()]
