"""The objectives of the ablation's rungs, as conf/ablation has them."""

from __future__ import annotations

from ernie_gram.config.loading import load_config
from ernie_gram.pretraining.ablation_plan import CONFIGS, RUNGS
from ernie_gram.pretraining.config import PretrainConfig

OBJECTIVES = {
    rung: load_config(PretrainConfig, ["--config", str(CONFIGS / f"{rung}.yaml")], "", "", {})[0].objective
    for rung in RUNGS
}


def as_options(rung: str) -> list[str]:
    """A rung's objective as it would be asked for on the command line."""
    return [f"--objective.{key}={value}" for key, value in vars(OBJECTIVES[rung]).items()]
