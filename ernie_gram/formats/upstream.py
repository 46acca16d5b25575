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

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ernie_gram.formats.heads import has_token_head, held_parameters, obstacles
from ernie_gram.formats.model import Format, ModelRecord, Obstacle
from ernie_gram.formats.names import RELATIVE, Column, from_ours
from ernie_gram.formats.parameters import (
    HEAD_TRANSFORM,
    LOWERCASE,
    TASK_KEY,
    flag,
    load_parameters,
    model_config,
    settings_of,
    write_settings,
)
from ernie_gram.formats.untrusted.paddle_files import write_paddle_variable, write_pdparams
from ernie_gram.formats.vocabularies import assembled, read_vocabulary, write_vocabulary
from ernie_gram.model.config import NUM_BUCKETS
from reader.errors import InputError
from reader.system.untrusted_text import read_json

CONFIG, PARAMS, WEIGHTS = "ernie_config.json", "params", "saved_weights.pdparams"
WEIGHTS_OF = {"static": PARAMS, "dygraph": WEIGHTS}
LAYER_NORM_EPS = 1e-5
# Settings of ours that upstream does not have: whatever stands in its files, it computes with the defaults.
NOT_UPSTREAM = ("layer_norm_eps", "intermediate_size")


def _read(folder: Path, layout: Column) -> ModelRecord:
    """Return the model in a folder; raises InputError if its files are damaged or do not fit together."""
    weights, path = WEIGHTS_OF[layout], folder / CONFIG
    if not path.is_file():
        raise InputError(f"{folder}: has {weights}, but no {CONFIG}; put upstream's file there")
    settings = {key: value for key, value in read_json(path).items() if key not in NOT_UPSTREAM}
    if layout == "static":
        settings = {"use_relative_position": (folder / PARAMS / RELATIVE).is_file(), **settings}
    else:
        settings = {"use_sentence_embedding": True, **settings}
        settings["use_relative_position"] = bool(settings.get("rel_pos_size"))
    vocabulary = read_vocabulary(folder, flag(settings, LOWERCASE, True, str(path)))
    adds_task = flag(settings, TASK_KEY, False, str(path))
    loaded = load_parameters(folder / weights, layout, model_config(settings, str(path)), adds_task)
    return assembled(folder, f"upstream_{layout}", loaded, vocabulary)


def _cannot_hold(model: ModelRecord, layout: Column) -> list[Obstacle]:
    """Return what a layout cannot hold of a model."""
    is_static, size = layout == "static", model.config.feed_forward_size
    found = obstacles(model, "upstream", "", LAYER_NORM_EPS, any_width=is_static, keeps_transform=is_static)
    if size != 4 * model.config.hidden_size:
        found.append(Obstacle(f"intermediate_size {size}: upstream has 4 x hidden_size", is_loss=False))
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
    partial(_read, layout="static"),
    partial(_cannot_hold, layout="static"),
    write_static,
)
DYGRAPH = Format(
    "upstream_dygraph",
    f"{WEIGHTS} beside {CONFIG}",
    lambda folder: (folder / WEIGHTS).is_file(),
    partial(_read, layout="dygraph"),
    partial(_cannot_hold, layout="dygraph"),
    write_dygraph,
)
