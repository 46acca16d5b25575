"""Convert the settings of models in JSON files to ModelConfig and back, and refuse those that it cannot represent.

The keys of ernie_config.json are those of ModelConfig, which has upstream's keys where upstream has them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from ernie_gram.config.loading import config_from_tree
from ernie_gram.model.config import ModelConfig
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
ACTIVATIONS = {"gelu": "gelu", "gelu_python": "gelu", "relu": "relu"}
ABSOLUTE = "absolute"
LOWERCASE = "do_lower_case"  # beside the keys of ModelConfig: whether the vocabulary is for lower-cased text
MAX_LAYERS = 1000  # more are an error or an attack: their parameters are listed before the file is read


def model_config(settings: Mapping[str, Any], source: str) -> ModelConfig:
    """Return the ModelConfig for the settings in a file; keys that ModelConfig does not have are ignored.

    Raises InputError, which names `source` and the key, for a value of a wrong type or out of range, and for a setting
    with which an encoder of ours would compute something else.
    """
    refuse_other_models(settings, source)
    named = {ALIASES.get(key, key): value for key, value in settings.items()}
    tree = {field.name: named[field.name] for field in fields(ModelConfig) if field.name in named}
    for key, value in tree.items():
        if isinstance(value, dict | list):
            raise InputError(f"{source}: {key}: expected a single value, found {type(value).__name__}")
    layers = tree.get("num_hidden_layers")
    if isinstance(layers, int | float) and layers > MAX_LAYERS:
        raise InputError(f"{source}: num_hidden_layers: {layers} is larger than {MAX_LAYERS:,}, the limit")
    if "hidden_act" in tree:
        tree["hidden_act"] = _activation(tree["hidden_act"], source)
    try:
        config = config_from_tree(ModelConfig, _without_redundant(tree), source)
    except InputError as error:
        raise InputError(str(error) if str(error).startswith(source) else f"{source}: {error}") from error
    return config


def settings_of(config: ModelConfig) -> Settings:
    """Return a ModelConfig as settings for a file, with numbers for sizes whose default, null, depends on another."""
    sizes = {"emb_size": config.embedding_size, "intermediate_size": config.feed_forward_size}
    return asdict(config) | sizes


def bert_settings(config: ModelConfig, num_rows: int) -> Settings:
    """Return a ModelConfig under the keys of BERT_DEFAULTS; the token embedding has `num_rows` rows."""
    others = {
        "vocab_size": num_rows,
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


def refuse_other_models(settings: Mapping[str, Any], source: str) -> None:
    """Raise InputError for settings that change what the model computes and that an encoder of ours does not have."""
    position = settings.get("position_embedding_type", ABSOLUTE)
    if position != ABSOLUTE:
        raise InputError(
            f"{source}: position_embedding_type {position!r}: only {ABSOLUTE!r} positions can be converted"
        )
    if settings.get("task_id", 0) != 0:
        raise InputError(f"{source}: task_id: only the embedding of task 0 can be converted")
    for key, what in (
        ("is_decoder", "a decoder"),
        ("add_cross_attention", "a decoder with cross-attention"),
        ("use_task_id", "a model with task embeddings"),
    ):
        if flag(settings, key, False, source):
            raise InputError(f"{source}: {key}: {what} cannot be converted")


def _activation(value: Any, source: str) -> str:
    if not isinstance(value, str) or value not in ACTIVATIONS:
        raise InputError(
            f"{source}: hidden_act {value!r} cannot be converted: the encoder has {', '.join(ACTIVATIONS)}, where gelu "
            "is the exact form with erf; an approximation with tanh gives other outputs"
        )
    return ACTIVATIONS[value]


def _without_redundant(tree: Settings) -> Settings:
    """Return settings with null for sizes that are equal to the default that null stands for."""
    hidden = tree.get("hidden_size", ModelConfig.hidden_size)
    redundant = {"emb_size": hidden, "intermediate_size": 4 * hidden if isinstance(hidden, int) else None}
    return {key: None if key in redundant and value == redundant[key] else value for key, value in tree.items()}
