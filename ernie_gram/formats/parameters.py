"""Settings and parameters of models in files: as ModelConfig and under our names, if they fit together.

The keys of ernie_config.json are those of ModelConfig, which has upstream's keys where upstream has them. A setting
with which an encoder of ours would compute something else is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from ernie_gram.config.loading import config_from_tree
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.untrusted.arrays import forget_pages
from ernie_gram.model.config import ModelConfig
from ernie_gram.model.parameters import Shapes, encoder, head, pooler, shapes_of, transform
from ernie_gram.run.checkpoint import Arrays
from reader.errors import InputError

Settings = dict[str, Any]

# The keys of BERT's config.json, and of PaddleNLP's, with the defaults of that software.
BERT_DEFAULTS: Settings = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-12,
}
ALIASES = {"type_vocab_size": "sent_type_vocab_size"}
# Settings that change what a model computes -> the values that an encoder of ours can have, and what the others mean.
POSSIBLE: Mapping[str, tuple[tuple[object, ...], str]] = {
    "hidden_act": (("gelu", "gelu_python", "relu"), "an activation other than relu, and than gelu with erf,"),
    "pool_act": (("tanh",), "a pooler without tanh"),
    "position_embedding_type": (("absolute",), "a position that is not absolute"),
    "use_task_id": ((False, None), "a model with embeddings of tasks, such as ERNIE 3.0,"),
    "is_decoder": ((False, None), "a decoder"),
    "add_cross_attention": ((False, None), "a decoder"),
}
LOWERCASE = "do_lower_case"  # beside the keys of ModelConfig: whether the vocabulary is for lower-cased text
MAX_LAYERS = 1000  # more are an error or an attack: their parameters are listed before the file is read
HEAD_TRANSFORM = ("mask_lm_trans_fc.w_0", "mask_lm_trans_fc.b_0")
HEAD_BIAS = "mask_lm_out_fc.b_0"
HEAD_NORM = "mask_lm_trans_layer_norm_scale"  # of a head that is tied to the embeddings
MAX_LISTED = 5


def encoder_shapes(config: ModelConfig) -> Shapes:
    """Return the names and shapes of the parameters of an encoder, and of its pooler if it has one.

    `config.vocab_size` must not be None.
    """
    assert config.vocab_size is not None
    return shapes_of(encoder(config, config.vocab_size), pooler(config) if config.use_pooler else None)


def head_shapes(config: ModelConfig, classes: int | None = None) -> Shapes:
    """Return the names and shapes of the head "mask_lm"; those of its transform alone without `classes`."""
    return shapes_of(transform("mask_lm", config) if classes is None else head("mask_lm", config, classes))


def head_size(parameters: Arrays) -> int | None:
    """Return out_emb_size of the transform of the head "mask_lm": 0 for a tied head, None if there is no transform."""
    transform = parameters.get(HEAD_TRANSFORM[0])
    return None if transform is None else 0 if HEAD_NORM in parameters else int(transform.shape[1])


def check_shapes(found: Shapes, expected: Shapes, source: str, spelled: Mapping[str, str] | None = None) -> None:
    """Raise InputError, which names `source` and the parameter, unless `found` has exactly the expected shapes.

    Args:
        spelled: our name -> the name in the file, for errors.
    """
    spelled = spelled or {}
    missing = [spelled.get(name, name) for name in expected if name not in found]
    extra = [spelled.get(name, name) for name in found if name not in expected]
    if missing:
        number = len(expected)
        raise InputError(f"{source}: {some_of(missing)} missing; a model with these settings has {number} parameters")
    if extra:
        raise InputError(
            f"{source}: {some_of(extra)} not expected: no part of a model with these settings, which would compute "
            "something else without it"
        )
    for name, shape in expected.items():
        if tuple(found[name]) != shape:
            raise InputError(
                f"{source}: {spelled.get(name, name)} has shape {list(found[name])}, but the settings of the model "
                f"give {list(shape)}"
            )


def check_numbers(arrays: Arrays, source: str) -> None:
    """Raise InputError, which names `source` and the parameter, unless all numbers are float32 and finite."""
    for name, values in arrays.items():
        if values.dtype != np.float32:
            raise InputError(f"{source}: {name} holds {values.dtype} numbers; parameters are floating-point numbers")
        if not np.isfinite(values).all():
            raise InputError(f"{source}: {name} holds numbers that are not finite; the model cannot be used")
        forget_pages(values)


def some_of(found: list[str]) -> str:
    """Return "a, b, c, d, e and 4 more"."""
    more = len(found) - MAX_LISTED
    return ", ".join(found[:MAX_LISTED]) + f" and {more} more" * (more > 0)


def model_config(settings: Mapping[str, Any], source: str) -> ModelConfig:
    """Return the ModelConfig for the settings in a file; keys that ModelConfig does not have are ignored.

    Raises InputError, which names `source` and the key, for a value of a wrong type or out of range, and for a setting
    with which an encoder of ours would compute something else.
    """
    for key, (possible, other) in POSSIBLE.items():
        if key in settings and settings[key] not in possible:
            raise InputError(f"{source}: {key} {settings[key]!r}: {other} cannot be converted")
    named = {ALIASES.get(key, key): value for key, value in settings.items()}
    tree = {field.name: named[field.name] for field in fields(ModelConfig) if field.name in named}
    layers = tree.get("num_hidden_layers")
    if isinstance(layers, int | float) and layers > MAX_LAYERS:
        raise InputError(f"{source}: num_hidden_layers: {layers} is larger than {MAX_LAYERS:,}, the limit")
    if tree.get("hidden_act") == "gelu_python":
        tree["hidden_act"] = "gelu"
    try:
        return config_from_tree(ModelConfig, _without_redundant(tree), source)
    except InputError as error:
        raise InputError(str(error) if str(error).startswith(source) else f"{source}: {error}") from error


def bert_settings(model: ModelRecord) -> Settings:
    """Return the settings of a model under the keys of BERT_DEFAULTS."""
    config = model.config
    others = {
        "vocab_size": len(model.parameters["word_embedding"]),
        "type_vocab_size": config.sent_type_vocab_size,
        "intermediate_size": config.feed_forward_size,
    }
    return {key: others.get(key, getattr(config, key, None)) for key in BERT_DEFAULTS}


def write_settings(path: Path, settings: Settings) -> None:
    """Write settings as a JSON file."""
    path.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def flag(settings: Mapping[str, Any], key: str, default: bool, source: str) -> bool:
    """Return a setting that is true or false; raises InputError for anything else. null means the default."""
    value = settings.get(key)
    if value is not None and not isinstance(value, bool):
        raise InputError(f"{source}: {key}: expected true or false, found {value!r}")
    return default if value is None else value


def _without_redundant(tree: Settings) -> Settings:
    """Return settings with null for sizes that are equal to the default that null stands for."""
    hidden = tree.get("hidden_size", ModelConfig.hidden_size)
    redundant = {"emb_size": hidden, "intermediate_size": 4 * hidden if isinstance(hidden, int) else None}
    return {key: None if key in redundant and value == redundant[key] else value for key, value in tree.items()}
