"""The parts of a model that other software can hold: the encoder, and the head over tokens that BERT and ERNIE have.

That head is tied to the token embedding, as ours is under contiguous masking with out_emb_size 0. Pre-training settings
are nested dicts here, because fine-tuning reads model folders too, and must not depend on pre-training.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ernie_gram.formats.model import ModelRecord, Obstacle
from ernie_gram.formats.names import MAPPING, RELATIVE, SEGMENTS, TOKEN_HEAD, Column, names
from ernie_gram.formats.parameters import (
    ALWAYS_READ,
    HEAD_BIAS,
    HEAD_TRANSFORM,
    check_numbers,
    check_shapes,
    encoder_shapes,
    head_shapes,
    transform_shapes,
)
from ernie_gram.formats.untrusted.arrays import StoredArrays
from ernie_gram.formats.untrusted.reading import read_arrays
from ernie_gram.model.config import NUM_BUCKETS, ModelConfig
from ernie_gram.run.checkpoint import Arrays
from reader.errors import counted
from reader.tokenization.wordpiece import WordPieceVocabulary

# The tables of n-grams and of query rows, and the beginning of the names of the head of query rows.
PRETRAINING_ONLY = ("ngram_embedding", "query_embedding", "fine_lm_")
# The beginning of the names of the output layers of fine-tuned tasks.
TASK_PREFIX = "cls_"
# The sections of pre-training settings that say how the heads predict. The others are about training.
PREDICTION_SECTIONS = ("data", "objective", "generator")
# Bias of a class that must not be predicted: its probability is 0 in float32.
NEVER = -1e4


def token_head_settings(config: ModelConfig) -> dict[str, Any]:
    """Return the pre-training settings of a head over the tokens, without the section `model`."""
    return {
        "data": {"max_seq_len": config.max_position_embeddings},
        "objective": {
            "masking": "contiguous",
            "explicit_weight": 0.0,
            "contiguous_weight": 1.0,
            "comprehensive_weight": 0.0,
            "generator_weight": 0.0,
            "rtd_weight": 0.0,
        },
        "generator": {},
    }


def is_explicit(pretraining: Mapping[str, Any]) -> bool:
    """Return whether the classes of the head "mask_lm" are tokens and n-grams, and not tokens only."""
    masking: object = pretraining.get("objective", {}).get("masking", "explicit")
    return masking == "explicit"


def has_token_head(model: ModelRecord) -> bool:
    """Return whether the model's only prediction head is the one over tokens, tied to the token embedding."""
    return model.pretraining is not None and not is_explicit(model.pretraining) and not model.config.out_emb_size


def encoder_parameters(model: ModelRecord) -> Arrays:
    """Return the parameters of the encoder and the pooler."""
    config = replace(model.config, vocab_size=len(model.parameters["word_embedding"]))
    return {name: model.parameters[name] for name in encoder_shapes(config)}


def held_parameters(model: ModelRecord, column: Column) -> Arrays:
    """Return what a format of other software holds of the parameters: of the encoder, the pooler and the heads.

    The tables that the software always reads and that the model does not have are zeros. The head over tokens has a
    bias for every row of the token embedding; that of rows beyond the vocabulary is NEVER.
    """
    config = model.config
    arrays = {SEGMENTS: np.zeros((config.sent_type_vocab_size, config.embedding_size), np.float32)}
    if ALWAYS_READ[column] == RELATIVE:
        arrays[RELATIVE] = np.zeros((NUM_BUCKETS, config.num_attention_heads), np.float32)
    arrays |= encoder_parameters(model)
    if has_token_head(model):
        arrays |= {name: model.parameters[name] for name in TOKEN_HEAD}
        bias, rows = arrays[HEAD_BIAS], len(arrays["word_embedding"])
        arrays[HEAD_BIAS] = np.concatenate([bias, np.full(rows - len(bias), NEVER, np.float32)])
    elif column == "static" and config.out_emb_size:
        # Upstream's heads for reading comprehension and tagging read the transform.
        arrays |= {name: model.parameters[name] for name in HEAD_TRANSFORM if name in model.parameters}
    known = names(column, config.num_hidden_layers)
    return {name: values for name, values in arrays.items() if name in known}


def needs_relative_position(model: ModelRecord) -> bool:
    """Return whether the model has a relative position bias that changes its output."""
    return model.config.use_relative_position and bool(model.parameters[RELATIVE].any())


def obstacles(
    model: ModelRecord, column: Column, software: str, relative: str = "", epsilon: float | None = None
) -> list[Obstacle]:
    """Return what a format of other software cannot hold of a model.

    Args:
        software: its name, for the reasons.
        relative: what it does in place of a bias by relative position; "" if it has one.
        epsilon: the only layer_norm_eps that it has; None if it is a setting there.
    """
    config, vocabulary, known = model.config, model.vocabulary, names(column, 0)
    found = list(map(Obstacle, _lost_heads(model, column)))
    if not isinstance(vocabulary, WordPieceVocabulary):
        only = f"only WordPiece ({WordPieceVocabulary.file_name})"
        found.append(Obstacle(f"a vocabulary of {vocabulary.kind}: {only}", is_loss=False))
    if MAPPING not in known and config.embedding_size != config.hidden_size:
        reason = f"emb_size {config.embedding_size}: {software} has embeddings of hidden_size"
        found.append(Obstacle(reason, is_loss=False))
    if relative and needs_relative_position(model):
        found.append(Obstacle(f"relative position: {relative}"))
    if epsilon not in (None, config.layer_norm_eps):
        changed = f"{software} has {epsilon:g}, so the outputs change slightly"
        found.append(Obstacle(f"layer_norm_eps {config.layer_norm_eps:g}: {changed}"))
    return found


def _lost_heads(model: ModelRecord, column: Column) -> list[str]:
    kept = encoder_parameters(model) | held_parameters(model, column)
    left_out, lost = [name for name in model.parameters if name not in kept], []
    task_head = [name for name in left_out if name.startswith(TASK_PREFIX)]
    if heads := [name for name in left_out if name not in task_head]:
        has_head = HEAD_BIAS in names(column, 0)
        held = "only a whole head over tokens can be held" if has_head else "prediction heads cannot be held"
        what = ", ".join(heads) if len(heads) <= 2 else f"{len(heads)} parameters of the prediction heads"
        lost.append(f"{what}: {held}")
    if task_head:
        lost.append(f"{', '.join(task_head)}: the output layer of a task; --outputs task_scores keeps it")
    if model.lexicon is not None:
        lost.append(f"the lexicon of {len(model.lexicon):,} n-grams: only our own folders hold one")
    if model.head:
        lost.append(f"a head of your own, {counted(len(model.head), 'array')}: only our own folders hold one")
    return lost


def read_own_parameters(
    path: Path, config: ModelConfig, pretraining: dict[str, Any] | None, classes: int
) -> StoredArrays:
    """Return the parameters in a file of ours; raises InputError unless they are exactly those of the settings.

    Of the parameters of heads, only those of "mask_lm" are checked here: the networks of pre-training and of the tasks,
    which ask for the others by name and shape, are unknown to this package.

    Args:
        pretraining: settings of the prediction heads, or None if there are none. Then there may still be the transform
            of a head "mask_lm", which heads for fine-tuning read, and the output layer of a task.
        classes: number of classes of "mask_lm".
    """
    stored, expected = read_arrays(path), encoder_shapes(config)
    check_numbers(stored.arrays, str(path))
    shapes = {name: values.shape for name, values in stored.arrays.items()}
    if pretraining is not None:
        expected |= head_shapes(config, classes)
        # The names of a term's parameters begin with its own, and its weight is among the settings.
        weights = (key for key in pretraining.get("objective", {}) if key.endswith("_weight"))
        unchecked = (*PRETRAINING_ONLY, *(key.removesuffix("weight") for key in weights))
        shapes = {name: shape for name, shape in shapes.items() if not name.startswith(unchecked)}
    else:
        shapes = {name: shape for name, shape in shapes.items() if not name.startswith(TASK_PREFIX)}
        if HEAD_TRANSFORM[0] in shapes:
            expected |= transform_shapes(config)
    check_shapes(shapes, expected, str(path))
    return stored
