"""Upstream's two layouts: ernie_config.json, vocab.txt, and

    params/                  of the static code: one file for each variable; the released English models
    saved_weights.pdparams   of the dygraph code; the released Chinese models

Upstream always has the LayerNorm epsilon 1e-5, and feed-forward networks of 4 x hidden_size. Its models always have a
table of sentence embeddings and, in the static layout, one of relative position. If a model of ours does not read them,
zeros are written, with which upstream computes the same.

The static code adds sentence embeddings for reading comprehension only. They are off unless `use_sentence_embedding` in
ernie_config.json is true (a key of ours). The dygraph code always adds them, and has relative position if
`rel_pos_size` is set.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ernie_gram.formats.heads import epsilon_losses, has_token_head, held_parameters, lost_heads, width_obstacles
from ernie_gram.formats.model import Format, ModelRecord, Obstacle
from ernie_gram.formats.names import RELATIVE, Column, from_ours
from ernie_gram.formats.parameters import (
    HEAD_TRANSFORM,
    LOWERCASE,
    flag,
    load_parameters,
    model_config,
    settings_of,
    write_settings,
)
from ernie_gram.formats.untrusted.paddle_files import write_paddle_variable, write_pdparams
from ernie_gram.formats.vocabularies import assembled, read_vocabulary, vocabulary_obstacles, write_vocabulary
from ernie_gram.model.config import NUM_BUCKETS
from reader.errors import InputError
from reader.system.untrusted_text import read_json

CONFIG, PARAMS, WEIGHTS = "ernie_config.json", "params", "saved_weights.pdparams"
LAYER_NORM_EPS = 1e-5
# Settings of ours that upstream does not have: whatever stands in its files, it computes with the defaults.
NOT_UPSTREAM = ("layer_norm_eps", "intermediate_size")


def read_static(folder: Path) -> ModelRecord:
    """Return the model in a folder; raises InputError if its files are damaged or do not fit together."""
    settings = {"use_relative_position": (folder / PARAMS / RELATIVE).is_file(), **_read_settings(folder, PARAMS)}
    return _read(folder, STATIC.name, PARAMS, "static", settings)


def read_dygraph(folder: Path) -> ModelRecord:
    """Return the model in a folder; raises InputError if its files are damaged or do not fit together."""
    settings = _read_settings(folder, WEIGHTS)
    settings = {"use_sentence_embedding": True, **settings, "use_relative_position": bool(settings.get("rel_pos_size"))}
    return _read(folder, DYGRAPH.name, WEIGHTS, "dygraph", settings)


def _read_settings(folder: Path, weights: str) -> dict[str, Any]:
    """Return the settings in a folder, without those that upstream does not have."""
    if not (folder / CONFIG).is_file():
        raise InputError(f"{folder}: has {weights}, but no {CONFIG}; put upstream's file there")
    return {key: value for key, value in read_json(folder / CONFIG).items() if key not in NOT_UPSTREAM}


def _read(folder: Path, format_name: str, weights: str, column: Column, settings: dict[str, Any]) -> ModelRecord:
    source = str(folder / CONFIG)
    vocabulary = read_vocabulary(folder, flag(settings, LOWERCASE, True, source))
    loaded = load_parameters(folder / weights, column, model_config(settings, source))
    return assembled(folder, format_name, loaded, vocabulary)


def cannot_hold_dygraph(model: ModelRecord) -> list[Obstacle]:
    """Return what the dygraph layout cannot hold of a model."""
    found = cannot_hold_static(model, keeps_transform=False)
    return [*found, *width_obstacles(model.config, "upstream's dygraph model")]


def cannot_hold_static(model: ModelRecord, keeps_transform: bool = True) -> list[Obstacle]:
    """Return what the static layout cannot hold of a model."""
    config = model.config
    found = [*lost_heads(model, keeps_transform=keeps_transform), *vocabulary_obstacles(model.vocabulary)]
    found += epsilon_losses(config, "upstream", LAYER_NORM_EPS)
    if config.feed_forward_size != 4 * config.hidden_size:
        found.append(Obstacle(f"intermediate_size {config.feed_forward_size}: upstream has 4 x hidden_size", False))
    return found


def write_static(model: ModelRecord, folder: Path, name: str) -> None:
    """Write the files of a model into an empty folder that will have the given name."""
    config = model.config
    arrays = {RELATIVE: np.zeros((NUM_BUCKETS, config.num_attention_heads), np.float32)} | held_parameters(model)
    if config.out_emb_size and not has_token_head(model):
        # Upstream's heads for reading comprehension and tagging read the transform.
        arrays |= {key: model.parameters[key] for key in HEAD_TRANSFORM if key in model.parameters}
    _write_settings(model, folder, {})
    (folder / PARAMS).mkdir()
    for key, values in arrays.items():
        write_paddle_variable(folder / PARAMS / key, values)


def write_dygraph(model: ModelRecord, folder: Path, name: str) -> None:
    """Write the files of a model into an empty folder that will have the given name."""
    config = model.config
    settings = {
        "rel_pos_size": NUM_BUCKETS if config.use_relative_position else None,
        "max_seq_len": config.max_position_embeddings,
        "has_pooler": config.use_pooler,
    }
    _write_settings(model, folder, settings)
    arrays = from_ours(held_parameters(model), "dygraph", config.num_hidden_layers, with_prefix=False)
    write_pdparams(folder / WEIGHTS, arrays)


def _write_settings(model: ModelRecord, folder: Path, settings: dict[str, Any]) -> None:
    """Write ernie_config.json, with `settings` beside those of the model, and the vocabulary."""
    kept = {key: value for key, value in settings_of(model.config).items() if key not in NOT_UPSTREAM}
    write_settings(folder / CONFIG, kept | {LOWERCASE: model.vocabulary.lowercase} | settings)
    write_vocabulary(model.vocabulary, folder)


STATIC = Format(
    "upstream_static",
    f"folder {PARAMS}/ beside {CONFIG}",
    lambda folder: (folder / PARAMS).is_dir(),
    read_static,
    cannot_hold_static,
    write_static,
)
DYGRAPH = Format(
    "upstream_dygraph",
    f"{WEIGHTS} beside {CONFIG}",
    lambda folder: (folder / WEIGHTS).is_file(),
    read_dygraph,
    cannot_hold_dygraph,
    write_dygraph,
)
