"""What upstream's two layouts, static and dygraph, have in common.

Upstream has one LayerNorm epsilon, 1e-5, and feed-forward networks of 4 x hidden_size. Its models always have tables
that a model of ours may not read: of sentence embeddings and, in the static layout, of relative position. Zeros are
written for them then, with which upstream computes the same.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ernie_gram.formats.assembly import assembled
from ernie_gram.formats.heads import encoder_parameters, lost_heads, token_head_parameters
from ernie_gram.formats.model import Model
from ernie_gram.formats.names import SEGMENTS, Column
from ernie_gram.formats.obstacle import Obstacle, losses
from ernie_gram.formats.parameters import load_parameters
from ernie_gram.formats.settings import LOWERCASE, flag, model_config, settings_of
from ernie_gram.formats.untrusted.json_file import read_json
from ernie_gram.formats.vocabularies import lost_vocabulary, read_vocabulary, wordpiece_of, write_vocabulary
from ernie_gram.run.checkpoint import Arrays
from reader.errors import InputError

CONFIG = "ernie_config.json"
LAYER_NORM_EPS = 1e-5
# Settings of ours that upstream does not have: whatever stands in its files, it computes with the defaults.
NOT_UPSTREAM = ("layer_norm_eps", "intermediate_size")


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the settings in a folder of upstream, without those that upstream does not have."""
    settings = read_json(folder / CONFIG)
    return {key: value for key, value in settings.items() if key not in NOT_UPSTREAM}


def read_upstream(
    folder: Path,
    format_name: str,
    weights: Path,
    column: Column,
    settings: dict[str, Any],
    always_read: tuple[str, ...],
) -> Model:
    """Return the model in a folder of upstream; raises InputError if its files are damaged or do not fit together.

    Args:
        weights: file or folder of the parameters.
        settings: see `read_settings`, completed by what the layout implies.
        always_read: see `load_parameters`.
    """
    source = str(folder / CONFIG)
    config = model_config(settings, source)
    loaded = load_parameters(weights, column, config, always_read)
    vocabulary = read_vocabulary(folder, flag(settings, LOWERCASE, True, source))
    return assembled(folder, format_name, loaded, vocabulary)


def obstacles(model: Model, keeps_transform: bool) -> list[Obstacle]:
    """Return what neither of upstream's layouts can hold; `keeps_transform` as for `lost_heads`."""
    config, found = model.config, losses([*lost_heads(model, keeps_transform), *lost_vocabulary(model.vocabulary)])
    if config.layer_norm_eps != LAYER_NORM_EPS:
        changed = f"{config.layer_norm_eps:g}: upstream has {LAYER_NORM_EPS:g}, so the outputs change slightly"
        found.append(Obstacle(f"layer_norm_eps {changed}"))
    if config.feed_forward_size != 4 * config.hidden_size:
        found.append(Obstacle(f"intermediate_size {config.feed_forward_size}: upstream has 4 x hidden_size", False))
    return found


def parameters(model: Model) -> Arrays:
    """Return the parameters that upstream's layouts hold, under our names, with the tables that upstream always has."""
    config = model.config
    zeros = {SEGMENTS: np.zeros((config.sent_type_vocab_size, config.embedding_size), np.float32)}
    return zeros | encoder_parameters(model) | token_head_parameters(model)


def write_files(model: Model, folder: Path, settings: dict[str, Any]) -> None:
    """Write ernie_config.json, with `settings` beside those of the model, and the vocabulary."""
    kept = {key: value for key, value in settings_of(model.config).items() if key not in NOT_UPSTREAM}
    vocabulary = wordpiece_of(model.vocabulary)
    lowercase = {} if vocabulary is None else {LOWERCASE: vocabulary.lowercase}
    (folder / CONFIG).write_text(json.dumps(kept | lowercase | settings, indent=2) + "\n", encoding="utf-8")
    write_vocabulary(vocabulary, folder)


def require_config(folder: Path, weights: str) -> None:
    """Raise InputError if the settings are missing beside the weights of upstream."""
    if not (folder / CONFIG).is_file():
        raise InputError(f"{folder}: has {weights}, but no {CONFIG}; put upstream's file there")
