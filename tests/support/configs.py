"""Load pre-training configs from command-line arguments."""

from __future__ import annotations

from ernie_gram.config.loading import load_config
from ernie_gram.pretraining.config import PretrainConfig


def load(*arguments: str) -> PretrainConfig:
    """Return the config that these command-line arguments give; raises InputError."""
    return load_config(PretrainConfig, list(arguments))[0]
