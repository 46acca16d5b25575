"""Convert settings to the JSON files of a PaddleNLP model folder, and back.

Keys as in PaddleNLP 3.0.0b4:

    config.json              ErnieGramConfig, with the class of the model in `architectures`
    tokenizer_config.json    the class of the tokenizer and its settings
    special_tokens_map.json  the names of the special tokens

Folders of PaddleNLP 2.4 and before have `model_config.json` instead of config.json; `flat_config` reads both.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from ernie_gram.formats.settings import BERT_DEFAULTS, bert_settings, flag
from ernie_gram.model.config import NUM_BUCKETS, ModelConfig
from reader.errors import InputError

Json = dict[str, Any]
TaskClass: TypeAlias = Literal[
    "ErnieGramForSequenceClassification", "ErnieGramForTokenClassification", "ErnieGramForQuestionAnswering"
]

VERSION = "3.0.0b4"  # the version whose classes were checked (tests/hub)
LAYER_NORM_EPS = 1e-5  # of PaddleNLP's ErnieGramModel, which has no setting for it

SAFETENSORS, PDPARAMS = "model.safetensors", "model_state.pdparams"
CONFIG, LEGACY_CONFIG = "config.json", "model_config.json"
# Keys of ours in config.json that PaddleNLP ignores; its defaults are what PaddleNLP computes.
OURS = {"use_sentence_embedding": True, "use_relative_position": False}


@dataclass(frozen=True)
class Family:
    """A family of PaddleNLP's classes whose encoder is ours.

    Attributes:
        name: the beginning of the names of the classes, for example of ErnieGramForTokenClassification.
        defaults: values of settings that config.json may leave out.
        fixed: settings that the classes do not read from config.json, with the values that they use.
    """

    name: str
    defaults: Json
    fixed: Json


# Without vocab_size, it is the number of rows of the token embedding.
_DEFAULTS: Json = BERT_DEFAULTS | {"vocab_size": None, "use_task_id": False, "task_id": 0}
ERNIE_GRAM = Family("ErnieGram", _DEFAULTS, {"layer_norm_eps": LAYER_NORM_EPS, "use_task_id": False})
FAMILIES = (
    ERNIE_GRAM,
    Family("Ernie", _DEFAULTS, {"layer_norm_eps": 1e-12}),
    Family("Bert", {**_DEFAULTS, "type_vocab_size": 16}, {"use_task_id": False}),
)


@dataclass(frozen=True)
class TaskHead:
    """The head of a fine-tuned model, in the form of PaddleNLP's ErnieGramFor... classes.

    These have one linear layer, `classifier`, over the pooled output (SequenceClassification) or over every slot
    (TokenClassification, QuestionAnswering). They have no place for another layer before it, such as upstream's
    128 wide `mask_lm_trans_fc`.

    Attributes:
        architecture: the name of the class.
        weight: float32 [H, C].
        bias: float32 [C].
        labels: names of the C classes in the order of their IDs; empty for QuestionAnswering, whose classes are start
            and end, and for regression, where C is 1.
        problem_type: "regression" or "multi_label_classification"; "" if the class says enough.
    """

    architecture: TaskClass
    weight: np.ndarray
    bias: np.ndarray
    labels: tuple[str, ...] = ()
    problem_type: str = ""


def config_json(config: ModelConfig, vocab_size: int, pad_token: int, head: TaskHead | None) -> Json:
    """Return the content of config.json.

    Args:
        config: settings of the encoder; its embeddings must be as wide as its layers.
        vocab_size: rows of the token embedding.
        pad_token: ID of [PAD]. PaddleNLP masks the slots that hold it.
        head: None for the encoder alone.
    """
    settings = bert_settings(config, vocab_size)
    del settings["layer_norm_eps"]  # not a setting of PaddleNLP's
    content: Json = {
        "architectures": [head.architecture if head else f"{ERNIE_GRAM.name}Model"],
        "model_type": "ernie_gram",
        "paddlenlp_version": VERSION,
        "dtype": "float32",
        "embedding_size": config.embedding_size,
        **settings,
        "pad_token_id": pad_token,
        "use_sentence_embedding": config.use_sentence_embedding,
    }
    if config.use_relative_position:
        content["rel_pos_size"] = NUM_BUCKETS
    if head and head.labels:
        content["id2label"] = {str(i): label for i, label in enumerate(head.labels)}
        content["label2id"] = {label: i for i, label in enumerate(head.labels)}
    if head and head.problem_type:
        content |= {"num_labels": len(head.bias), "problem_type": head.problem_type}
    return content


def flat_config(content: Json) -> Json:
    """Return the settings of config.json or of the older model_config.json as one object with `architectures`.

    The older file nests them in `init_args`, a list of objects, and has the name of the class as `init_class`.
    """
    flat = {key: value for key, value in content.items() if key not in ("init_args", "init_class")}
    nested = content.get("init_args", [])
    for part in nested if isinstance(nested, list) else []:
        if isinstance(part, dict):
            flat = {**flat_config(part), **flat}
    if isinstance(content.get("init_class"), str):
        flat["architectures"] = [content["init_class"]]
    return flat


def family_of(flat: Json) -> Family | None:
    """Return the family of the model of a config, or None if it is not one of those that we read."""
    architectures = flat.get("architectures")
    if not isinstance(architectures, list) or not architectures or not isinstance(architectures[-1], str):
        return None
    found = (
        family for family in FAMILIES if architectures[-1].startswith((f"{family.name}Model", f"{family.name}For"))
    )
    return next(found, None)


def is_paddlenlps(folder: Path, flat: Json) -> bool:
    """Return whether PaddleNLP wrote a folder of Bert or Ernie, and not transformers, whose config.json is similar."""
    return "paddlenlp_version" in flat or (folder / PDPARAMS).is_file()


def encoder_settings(flat: Json, family: Family, source: str) -> Json:
    """Return the settings of an encoder as PaddleNLP computes it; see settings.py for their types and limits.

    PaddleNLP's embeddings always add segments, and no version of it applies relative position. Users may add the keys
    of OURS to the config.json of a checkpoint that was trained otherwise, such as upstream's English models.
    Raises InputError, which names `source`, for settings with which an encoder of ours would compute something else.
    """
    settings = family.defaults | {key: flat[key] for key in family.defaults if key in flat} | family.fixed
    if family is ERNIE_GRAM and flat.get("embedding_size", settings["hidden_size"]) != settings["hidden_size"]:
        raise InputError(
            f"{source}: embedding_size: differs from hidden_size; PaddleNLP cannot run such a model either"
        )
    if flat.get("pool_act", "tanh") != "tanh":
        raise InputError(f"{source}: pool_act {flat['pool_act']!r}: only a pooler with tanh can be converted")
    return settings | {key: flag(flat, key, default, source) for key, default in OURS.items()}
