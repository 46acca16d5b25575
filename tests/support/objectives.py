"""Pre-training configs from command-line arguments, and the objectives of the ablation's rungs, from conf/ablation."""

from __future__ import annotations

from ernie_gram.config.loading import load_config
from ernie_gram.pretraining.config import PretrainConfig
from reader.system.installation import CONF


def load(*arguments: str) -> PretrainConfig:
    """Return the config that these command-line arguments give; raises InputError."""
    return load_config(PretrainConfig, list(arguments))[0]


CONFIGS = CONF / "ablation"
# The rows of table 12 are "explicit" (#5), "cnp" (#4), "enrm" (#3), "both" (#2) and "full" (#1). Those of
# table 5, which has no relative position, are one number lower and begin with "both".
RUNGS = ("token", "contiguous", "explicit", "cnp", "enrm", "both", "full")
OBJECTIVES = {rung: load("--config", str(CONFIGS / f"{rung}.yaml")).objective for rung in RUNGS}


def as_options(rung: str) -> list[str]:
    """Return a rung's objective as command-line options."""
    return [f"--objective.{key}={value}" for key, value in vars(OBJECTIVES[rung]).items()]
