"""The JSON files of a PaddleNLP model folder, from settings and back, and the text of its card.

Keys as in PaddleNLP 3.0.0b4:

    config.json              ErnieGramConfig, with the class of the model in `architectures`
    tokenizer_config.json    the class of the tokenizer and its settings
    special_tokens_map.json  the names of the special tokens

Folders of PaddleNLP 2.4 and before have `model_config.json` instead of config.json; `flat_config` reads both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from ernie_gram.formats.model_card import Usage
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
EXAMPLE = "exact_relative_position.py"


@dataclass(frozen=True)
class Family:
    """A family of PaddleNLP's classes whose encoder is ours.

    Attributes:
        name: with which the names of the classes begin, for example in ErnieGramForTokenClassification.
        defaults: values of settings that config.json may leave out.
        fixed: settings that the classes do not have, whatever stands in config.json.
    """

    name: str
    defaults: Json
    fixed: Json


# The size of the vocabulary is then the number of rows of the token embedding.
_DEFAULTS: Json = BERT_DEFAULTS | {"vocab_size": None, "use_task_id": False}
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
    """

    architecture: TaskClass
    weight: np.ndarray
    bias: np.ndarray
    labels: tuple[str, ...] = ()


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
    elif head and head.architecture.endswith("SequenceClassification"):
        content |= {"num_labels": 1, "problem_type": "regression"}
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


_LOADING = f"""
PaddleNLP ({VERSION} was tested) loads this folder. In the folder, run:

```python
import paddle
from paddlenlp.transformers import AutoTokenizer, CLASS
IMPORT
tokenizer, model = AutoTokenizer.from_pretrained("."), CLASS.from_pretrained(".")
model.eval()
inputs = tokenizer(["Give the texts", "in a list."], padding=True, return_tensors="pd")
CALL
```

MEANING
"""
_FINE_TUNING = """`sequence_output` is float32 [texts, tokens, hidden_size]. For fine-tuning, load the folder with
`ErnieGramForSequenceClassification`, `ErnieGramForTokenClassification` or `ErnieGramForQuestionAnswering`."""
# What each class returns, and what that is.
_OUTPUTS: dict[TaskClass | None, tuple[str, str]] = {
    None: ("sequence_output, pooled_output", _FINE_TUNING),
    "ErnieGramForSequenceClassification": ("logits", "`logits` is float32 [texts, classes]."),
    "ErnieGramForTokenClassification": ("logits", "`logits` is float32 [texts, tokens, classes]."),
    "ErnieGramForQuestionAnswering": ("start_logits, end_logits", "Both are float32 [texts, tokens]."),
}
_PLAIN_CALL = "OUTPUTS = model(**inputs)"

_EXACT_CALL = """table = ENCODER.embeddings.rel_pos_embeddings.weight.numpy()
mask = attention_mask(table, inputs["input_ids"].numpy() != tokenizer.pad_token_id)
OUTPUTS = model(
    inputs["input_ids"], inputs["token_type_ids"], attention_mask=paddle.to_tensor(mask)
)"""
_EXACT_HEADS = """ The ErnieGramFor... classes take the same mask; there, the table is
`model.ernie_gram.embeddings.rel_pos_embeddings.weight`."""
_EXACT = f"""
`{EXAMPLE}` needs nothing but numpy.HEADS The mask is a constant in PaddleNLP: fine-tuning there does not
train the table. Without the mask, PaddleNLP computes something else.
"""

_TOKENIZER = """
`ErnieGramTokenizer` gives the token IDs with which the model was trained, except for:

- Symbols (Unicode category S, for example € ° → ™ and emoji) and the characters U+00AD U+00B2 U+00BA U+3007 U+00B5
  U+00D8 U+014B U+01B1: it makes each of them a word, while the model was trained with BERT's rules, which split at
  white space, punctuation and Han characters only. A word with a symbol inside therefore gets other tokens.
- The names of the special tokens, such as `[SEP]` or `[MASK]`, written in a text: it makes them the special token; the
  model was trained with brackets and letters.

Measured with ERNIE's vocabularies and PaddleNLP VERSION, over the distinct fields of the files: 45 of 74,508 fields
have other token IDs in GLUE's development sets, 106 of 55,768 in CLUE's, all of them because of symbols.
""".replace("VERSION", VERSION)

# Only in the folder itself: the copy of the card in community/ is for readers.
PUBLISHING = """
## Before you publish this folder

`community/` holds what PaddleNLP's listing of models asks for. Put the name of your organisation in place of
`ORGANISATION`, in the name of the folder and in the addresses of `files.json`, and upload the four files to these
addresses. State the licence and the training data in the front matter and the text of both cards. Then remove this
section.
"""


def usage(needs_mask: bool, head: TaskHead | None, task: str, remarks: Sequence[str], numbers: int) -> Usage:
    """Return PaddleNLP's part of a model card.

    Args:
        needs_mask: whether only the mask of EXAMPLE makes the outputs exact.
        head: the output layer in the folder, if there is one.
        task: the name of its task; "" if unknown.
        remarks, numbers: see Usage.
    """
    outputs, meaning = _OUTPUTS[head.architecture if head else None]
    replacements = {
        "IMPORT": f"from {EXAMPLE.removesuffix('.py')} import attention_mask\n" if needs_mask else "",
        "CLASS": head.architecture if head else "AutoModel",
        "CALL": _EXACT_CALL if needs_mask else _PLAIN_CALL,
        "ENCODER": "model.ernie_gram" if head else "model",
        "OUTPUTS": outputs,
        "MEANING": meaning,
        "HEADS": "" if head else _EXACT_HEADS,
    }
    loading = _LOADING + (_EXACT if needs_mask else "")
    for name, text in replacements.items():
        loading = loading.replace(name, text)
    return Usage("paddlenlp", loading, _TOKENIZER, tuple(remarks), _output_layer(head, task), numbers)


def _output_layer(head: TaskHead | None, task: str) -> str:
    """Return which output layer a folder has, in Markdown."""
    if head is None:
        return ""
    labels = f"; its classes are {', '.join(f'`{label}`' for label in head.labels)}" if head.labels else ""
    return f"It has the output layer of {f'the task `{task}`' if task else 'a task'}, `{head.architecture}`{labels}."
