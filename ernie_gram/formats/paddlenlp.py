"""Model folders of PaddleNLP's ErnieGram classes, read and written without PaddleNLP.

    config.json                                     ErnieGramConfig, with the class of the model in `architectures`
    model.safetensors, model_state.pdparams         the same parameters in both files; PaddleNLP prefers the first
    vocab.txt, tokenizer_config.json, special_tokens_map.json
    README.md                                       model card
    community/ORGANISATION/NAME/                    README.md and files.json for PaddleNLP's listing of models
    exact_relative_position.py                      only for a model with relative position, see `lost`

PaddleNLP's encoder is ours, with three differences, found in its source and confirmed by running it (tests/hub): it
creates the table of relative position, but never applies it; it always adds segment embeddings; its LayerNorm has 1e-5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from ernie_gram.formats.heads import held_arrays, losses, needs_relative_position, read_foreign
from ernie_gram.formats.model import Format, ModelRecord
from ernie_gram.formats.model_card import FILE_NAME, model_card, rendered
from ernie_gram.formats.parameters import BERT_DEFAULTS, Settings, bert_settings, write_settings
from ernie_gram.formats.untrusted.paddle_files import write_pdparams
from ernie_gram.formats.vocabularies import TOKENIZER_SETTINGS, read_vocabulary, write_tokenizer
from ernie_gram.model import exact_relative_position
from ernie_gram.model.config import NUM_BUCKETS
from ernie_gram.run.checkpoint import save_safetensors
from reader.system.untrusted_text import read_json

TaskClass: TypeAlias = Literal[
    "ErnieGramForSequenceClassification", "ErnieGramForTokenClassification", "ErnieGramForQuestionAnswering"
]

VERSION = "3.0.0b4"  # the version whose classes were checked (tests/hub)
# PaddleNLP's requirements let in later versions, with which it cannot be imported.
PINS = "aistudio-sdk==0.2.6 datasets==2.21.0 huggingface_hub==0.25.2 pyarrow==17.0.0"
LAYER_NORM_EPS = 1e-5  # of PaddleNLP's ErnieGramModel, which has no setting for it

NAME = "paddlenlp"
SAFETENSORS, PDPARAMS = "model.safetensors", "model_state.pdparams"
CONFIG = "config.json"
LOOKS_FOR = f"{CONFIG} of ErnieGram, or of Ernie or Bert with {PDPARAMS} or paddlenlp_version"
EXAMPLE = "exact_relative_position.py"
ORGANISATION = "ORGANISATION"  # in community/; users put their own name in its place, see templates/publishing.md
# The address from which PaddleNLP 3 downloads "ORGANISATION/NAME", and the keys of the listing.
ADDRESS = f"https://bj.bcebos.com/paddlenlp/models/community/{ORGANISATION}"
LISTED = {
    "model_config_file": CONFIG,
    "model_state": PDPARAMS,
    "tokenizer_config_file": TOKENIZER_SETTINGS,
    "vocab_file": "vocab.txt",
}
# Keys of ours in config.json that PaddleNLP ignores; its defaults are what PaddleNLP computes.
OURS = {"use_sentence_embedding": True, "use_relative_position": False}

ERNIE_GRAM, BERT = "ErnieGram", "Bert"
# The families of classes whose encoder is ours, by the beginning of their names, such as BertForMaskedLM
# -> the settings that they do not read from config.json, with the values that they use.
FIXED: dict[str, Settings] = {
    ERNIE_GRAM: {"layer_norm_eps": LAYER_NORM_EPS},
    "Ernie": {"layer_norm_eps": 1e-12},
    BERT: {},
}


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


def detect(folder: Path) -> bool:
    """Return whether a folder has a model of PaddleNLP; raises InputError if its settings are damaged."""
    settings = read_json(folder / CONFIG) if (folder / CONFIG).is_file() else {}
    family = family_of(settings)
    return family == ERNIE_GRAM or (family is not None and is_paddlenlps(folder, settings))


def read(folder: Path) -> ModelRecord:
    """Return the model in a folder that `detect` recognises: the encoder as PaddleNLP computes it.

    PaddleNLP's embeddings always add segments, which are kept unless they are zero in a model of ours. No version of it
    applies relative position: the table is left out, with a note. Users may add the keys of OURS to the config.json of
    a checkpoint that was trained otherwise, such as upstream's English models. Heads of tasks are left out.

    Raises InputError if a file is damaged or missing, if the files do not fit together, and for settings with which an
    encoder of ours would compute something else.
    """
    path = folder / CONFIG
    stored = read_json(path)
    family = family_of(stored)
    assert family is not None
    # Without vocab_size, it is the number of rows of the token embedding.
    defaults = BERT_DEFAULTS | OURS | {"vocab_size": None, "type_vocab_size": 16 if family == BERT else 2}
    settings = defaults | stored | FIXED[family]
    weights = folder / (SAFETENSORS if (folder / SAFETENSORS).is_file() else PDPARAMS)
    rules = read_json(folder / TOKENIZER_SETTINGS) if (folder / TOKENIZER_SETTINGS).is_file() else {}
    vocabulary = read_vocabulary(folder, rules, str(folder / TOKENIZER_SETTINGS))
    return read_foreign(NAME, weights, "paddlenlp", settings, str(path), vocabulary)


def lost(model: ModelRecord) -> list[str]:
    """Return what PaddleNLP's classes cannot hold of a model, or compute differently.

    Relative position is a loss, because PaddleNLP never applies it, unless its table is zero. Another layer_norm_eps
    and prediction heads are losses too. A folder that PaddleNLP could not load is refused.
    """
    relative = (
        "PaddleNLP stores the table of the bias but never applies it, and computes something else, unless it is given "
        f"the attention mask that {EXAMPLE} makes"
    )
    return losses(model, "paddlenlp", "PaddleNLP", relative, LAYER_NORM_EPS)


def write(
    model: ModelRecord,
    folder: Path,
    name: str,
    head: TaskHead | None = None,
    max_tokens: int | None = None,
    further: Mapping[str, str] | None = None,
) -> None:
    """Write the files of a PaddleNLP model into an existing, empty folder.

    Args:
        model: one that PaddleNLP's classes can hold, see `lost`.
        name: the name under which the folder is published, for the card and the listing.
        head: the head of a fine-tuned model; None for the encoder alone.
        max_tokens: of an input, for the tokenizer; None means all positions.
        further: content of other files, by name.
    """
    vocabulary, config = model.vocabulary, model.config
    arrays = held_arrays(model, "paddlenlp", with_prefix=head is not None)
    if head is not None:
        arrays |= {"classifier.weight": head.weight, "classifier.bias": head.bias}
    save_safetensors(folder / SAFETENSORS, arrays)
    write_pdparams(folder / PDPARAMS, arrays)
    write_settings(folder / CONFIG, _config_json(model, head))
    write_tokenizer(vocabulary, folder, "ErnieGramTokenizer", max_tokens or config.max_position_embeddings)
    for file, content in (further or {}).items():
        (folder / file).write_text(content, encoding="utf-8")
    if needs_relative_position(model):
        (folder / EXAMPLE).write_bytes(Path(exact_relative_position.__file__).read_bytes())
    how = rendered(
        "paddlenlp.md",
        version=VERSION,
        pins=PINS,
        config=config,
        head=head,
        task=model.training.task if model.training else "",
        class_name=head.architecture if head else "AutoModel",
        needs_mask=needs_relative_position(model),
    )
    card = model_card(model, name, NAME, arrays, how, lost(model))
    (folder / FILE_NAME).write_text(card + rendered("publishing.md"), encoding="utf-8")
    community = folder / "community" / ORGANISATION / name
    community.mkdir(parents=True)
    (community / FILE_NAME).write_text(card, encoding="utf-8")
    write_settings(community / "files.json", {key: f"{ADDRESS}/{name}/{file}" for key, file in LISTED.items()})


def _config_json(model: ModelRecord, head: TaskHead | None) -> Settings:
    """Return the content of config.json. PaddleNLP masks the slots that hold the token `pad_token_id`."""
    config = model.config
    settings = bert_settings(model)
    del settings["layer_norm_eps"]  # not a setting of PaddleNLP's
    content: Settings = {
        "architectures": [head.architecture if head else f"{ERNIE_GRAM}Model"],
        "model_type": "ernie_gram",
        "paddlenlp_version": VERSION,
        "dtype": "float32",
        "embedding_size": config.embedding_size,
        **settings,
        "pad_token_id": model.vocabulary.pad,
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


def family_of(settings: Settings) -> str | None:
    """Return the family of the model of a config, or None if it is not one of those that we read."""
    listed = settings.get("architectures")
    name = str(listed[-1]) if isinstance(listed, list) and listed else ""
    return next((each for each in FIXED if name.startswith((f"{each}Model", f"{each}For"))), None)


def is_paddlenlps(folder: Path, settings: Settings) -> bool:
    """Return whether PaddleNLP wrote a folder of Bert or Ernie, and not transformers, whose config.json is similar."""
    return "paddlenlp_version" in settings or (folder / PDPARAMS).is_file()


FORMAT = Format(NAME, LOOKS_FOR, detect, read, lost, write)
