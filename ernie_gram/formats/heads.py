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

from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.names import (
    PREFIXES,
    RELATIVE,
    SEGMENTS,
    TOKEN_HEAD,
    Column,
    foreign_prefix,
    is_transposed,
    names,
    oriented,
    to_ours,
)
from ernie_gram.formats.parameters import (
    HEAD_BIAS,
    HEAD_NORM,
    HEAD_TRANSFORM,
    Settings,
    check_numbers,
    check_shapes,
    encoder_shapes,
    head_shapes,
    model_config,
    some_of,
)
from ernie_gram.formats.untrusted.reading import read_arrays
from ernie_gram.formats.vocabularies import check_vocabulary
from ernie_gram.model.config import ModelConfig
from ernie_gram.run.checkpoint import Arrays
from reader.errors import InputError, quoted
from reader.tokenization.vocabulary import Vocabulary
from reader.tokenization.wordpiece import WordPieceVocabulary

# Tables that a file may hold although the model does not read them -> the setting that says whether it does.
OPTIONAL_TABLES = {SEGMENTS: "use_sentence_embedding", RELATIVE: "use_relative_position"}
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


def held_arrays(model: ModelRecord, column: Column, with_prefix: bool = False) -> Arrays:
    """Return what a format of other software holds of the parameters, under its names.

    That is the encoder, the pooler and some heads. Segments, which other software always reads, are zeros for a model
    without them. The head over tokens has a bias for every row of the token embedding; that of rows beyond the
    vocabulary is NEVER.

    Args:
        with_prefix: whether the encoder's names have the prefix, as in models with a head.
    """
    theirs, prefix = names(column, model.config.num_hidden_layers), PREFIXES[column][0] if with_prefix else ""
    return {
        ("" if name in TOKEN_HEAD else prefix) + theirs[name]: oriented(values, name, column)
        for name, values in _held(model, column).items()
    }


def _held(model: ModelRecord, column: Column) -> Arrays:
    config = model.config
    arrays = {SEGMENTS: np.zeros((config.sent_type_vocab_size, config.embedding_size), np.float32)}
    arrays |= encoder_parameters(model)
    if has_token_head(model):
        arrays |= {name: model.parameters[name] for name in TOKEN_HEAD}
        bias, rows = arrays[HEAD_BIAS], len(arrays["word_embedding"])
        arrays[HEAD_BIAS] = np.concatenate([bias, np.full(rows - len(bias), NEVER, np.float32)])
    known = names(column, config.num_hidden_layers)
    return {name: values for name, values in arrays.items() if name in known}


def needs_relative_position(model: ModelRecord) -> bool:
    """Return whether the model has a relative position bias that changes its output."""
    return model.config.use_relative_position and bool(model.parameters[RELATIVE].any())


def losses(model: ModelRecord, column: Column, software: str, relative: str, epsilon: float | None = None) -> list[str]:
    """Return what a format of other software cannot hold of a model, one line each.

    Args:
        software: its name, for the reasons.
        relative: what it does in place of a bias by relative position.
        epsilon: the only layer_norm_eps that it has; None if it is a setting there.

    Raises InputError for a vocabulary or embeddings that it cannot have.
    """
    config, vocabulary, known, cannot = model.config, model.vocabulary, names(column, 0), f"{software} cannot hold"
    if not isinstance(vocabulary, WordPieceVocabulary):
        only = f"only WordPiece ({WordPieceVocabulary.file_name})"
        raise InputError(f"{model.source}: {cannot} a vocabulary of {vocabulary.kind}: {only}")
    if config.embedding_size != config.hidden_size:
        reason = f"emb_size {config.embedding_size}: its embeddings are of hidden_size"
        raise InputError(f"{model.source}: {cannot} {reason}")
    kept, lost = encoder_parameters(model) | _held(model, column), list[str]()
    if left_out := [name for name in model.parameters if name not in kept]:
        held = "a whole one over tokens" if HEAD_BIAS in known else "that of a task, with --outputs task_scores"
        lost.append(f"{some_of(left_out)}: the only head that it can hold is {held}")
    if model.lexicon is not None:
        lost.append(f"the lexicon of {len(model.lexicon):,} n-grams: only our own folders hold one")
    if needs_relative_position(model):
        lost.append(f"relative position: {relative}")
    if epsilon not in (None, config.layer_norm_eps):
        changed = f"{software} has {epsilon:g}, so the outputs change slightly"
        lost.append(f"layer_norm_eps {config.layer_norm_eps:g}: {changed}")
    return lost


def read_foreign(
    name: str, weights: Path, column: Column, settings: Settings, source: str, vocabulary: Vocabulary, *notes: str
) -> ModelRecord:
    """Return the model in a folder of other software: an encoder and at most a head over tokens.

    The head's classes become the tokens of the vocabulary; there may be fewer of them than rows of the embedding.

    Args:
        name: of the format.
        weights: a file in the folder, or a folder with one Paddle variable per file.
        settings: as `model_config` takes them.
        source: the file of the settings, for errors.
        notes: follow those on the parameters.

    Raises InputError for invalid settings; if a parameter is missing, unknown, of another shape, not floating-point or
    not finite; and if the vocabulary or the head does not fit the token embedding.
    """
    config, stored = model_config(settings, source), read_arrays(weights)
    said, path = list[str](), str(weights)
    if foreign := foreign_prefix(stored, column):
        stored = {name.removeprefix(foreign): values for name, values in stored.items()}
        said.append(f"the names of the parameters begin with {quoted(foreign)}; read without it")
    spelled, left_out = to_ours(stored, column, config.num_hidden_layers, path)
    arrays = {ours: oriented(stored[theirs], ours, column) for ours, theirs in spelled.items()}
    if left_out:
        said.append(f"left out {some_of(left_out)}: no part of an encoder or of a head over tokens")
    if column != "static":  # other software always reads segments: we have written zeros for a model without them
        config = replace(config, use_sentence_embedding=bool(np.any(arrays.get(SEGMENTS, 1))))
    for table, key in OPTIONAL_TABLES.items():
        if table in arrays and not getattr(config, key) and arrays.pop(table).any():
            said.append(f"left out {table}: the model does not read it ({key} is false)")
    config = _completed(config, arrays, spelled, column, path)
    check_numbers({spelled[name]: values for name, values in arrays.items()}, path)
    tokens, rows = len(vocabulary), len(arrays["word_embedding"])
    check_vocabulary(vocabulary, rows, weights.parent)
    if HEAD_BIAS in arrays:
        if not tokens <= (classes := len(arrays[HEAD_BIAS])) <= rows:
            raise InputError(
                f"{path}: the prediction head has {classes:,} classes, but the vocabulary {tokens:,} tokens, and the "
                f"token embedding {rows:,} rows"
            )
        arrays[HEAD_BIAS] = arrays[HEAD_BIAS][:tokens]
    heads = token_head_settings(config) if HEAD_BIAS in arrays else None
    return ModelRecord(weights.parent, name, config, arrays, vocabulary, None, heads, (*said, *notes))


def _completed(
    config: ModelConfig, arrays: Arrays, spelled: dict[str, str], column: Column, source: str
) -> ModelConfig:
    """Return the settings, completed by those that the parameters of a file determine.

    Raises InputError if the parameters do not fit the settings.
    """
    shapes = {name: values.shape for name, values in arrays.items()}
    # Heads for fine-tuning read the transform alone.
    has_transform, has_head = HEAD_TRANSFORM[0] in shapes, HEAD_BIAS in shapes or HEAD_NORM in shapes
    width = shapes[HEAD_TRANSFORM[0]][-1:] if has_transform else (config.out_emb_size,)
    config = replace(
        config,
        # A table without rows is reported as a wrong shape.
        vocab_size=config.vocab_size or next(iter(shapes.get("word_embedding", ())), 0) or 1,
        use_pooler="pooled_fc.w_0" in shapes,
        out_emb_size=0 if has_head else sum(width),
    )
    expected = encoder_shapes(config)
    if has_head or has_transform:
        expected |= head_shapes(config, sum(shapes.get(HEAD_BIAS, ())) if has_head else None)
    # In the file's orientation, which errors show.
    shapes, expected = (
        {name: shape[::-1] if is_transposed(name, column) else shape for name, shape in each.items()}
        for each in (shapes, expected)
    )
    check_shapes(shapes, expected, source, names(column, config.num_hidden_layers) | spelled)
    return config
