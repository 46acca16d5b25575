"""BERT in the layout of Hugging Face's transformers: config.json, weights, vocab.txt or tokenizer.json.

A folder of sentence-transformers is read too: the BERT in it, without the pooling and normalisation after it. So is
ERNIE (`model_type` "ernie"), because its network is that of BERT, with the embeddings of one task.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ernie_gram.formats.heads import has_token_head, held_parameters, lost_heads, width_obstacles
from ernie_gram.formats.model import Format, Model, Obstacle
from ernie_gram.formats.names import RELATIVE, from_ours
from ernie_gram.formats.paddlenlp import is_paddlenlps
from ernie_gram.formats.parameters import (
    BERT_DEFAULTS,
    LOWERCASE,
    bert_settings,
    flag,
    load_parameters,
    model_config,
    refuse_other_models,
    write_settings,
)
from ernie_gram.formats.untrusted.arrays import write_safetensors
from ernie_gram.formats.vocabularies import (
    assembled,
    tokenizer_settings,
    vocabulary_obstacles,
    write_vocabulary,
)
from reader.errors import InputError, quoted
from reader.system.untrusted_text import read_json
from reader.tokenization.vocabulary import Vocabulary
from reader.tokenization.vocabulary_file import load_vocabulary
from reader.tokenization.wordpiece import WordPieceVocabulary

NAME = "bert"
CONFIG, OLD_CONFIG = "config.json", "bert_config.json"
# The first one that is there is read.
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
LOOKS_FOR = f"{CONFIG} with model_type bert, or {OLD_CONFIG}"
MODEL_TYPES = ("bert", "ernie")
MODULES = "modules.json"
AFTER_ENCODER = f"left out the modules of sentence-transformers after the encoder ({MODULES}), such as pooling"
SEGMENTS_KEY = "use_sentence_embedding"
VOCABULARY, TOKENIZER, TOKENIZER_SETTINGS = "vocab.txt", "tokenizer.json", "tokenizer_config.json"
ADDED_TOKENS = "added_tokens.json"
MAX_TOKENIZER_BYTES = 100_000_000
# Added tokens that a note lists.
MAX_LISTED = 5
MAX_ROWS_PER_TOKEN = 2
# A tab, a line break or half a character: what was written could not be read back.
UNWRITABLE = re.compile(r"[\t\n\r\ud800-\udfff]")
# Settings of the normalizer in tokenizer.json, and their names in tokenizer_config.json.
_NORMALIZER_KEYS = {
    "lowercase": LOWERCASE,
    "strip_accents": "strip_accents",
    "handle_chinese_chars": "tokenize_chinese_chars",
}
ASSUMED = f"{TOKENIZER_SETTINGS} does not say whether text becomes lower case: taken as true, as transformers does"


def detect(folder: Path) -> bool:
    """Return whether a folder has the settings of a BERT; raises InputError if config.json is damaged."""
    path = config_file(folder)
    settings = read_json(path) if path.is_file() else {}
    return _is_bert(settings, path.name) and not is_paddlenlps(folder, settings)


def config_file(folder: Path) -> Path:
    """Return the path of config.json, or of bert_config.json, as Google and old PyTorch tools named it."""
    old = folder / OLD_CONFIG
    return old if old.is_file() and not (folder / CONFIG).is_file() else folder / CONFIG


def read(folder: Path) -> Model:
    """Return the model in a folder; raises InputError if its files are damaged or do not fit together."""
    source, settings = str(config_file(folder)), read_json(config_file(folder))
    known = {key: settings.get(key, default) for key, default in BERT_DEFAULTS.items()}
    adds_task = flag(settings, "use_task_id", False, source)
    refuse_other_models({**settings, "use_task_id": False}, source)
    segments = flag(settings, SEGMENTS_KEY, True, source)
    config = model_config(known | {SEGMENTS_KEY: segments, "use_relative_position": False}, source)
    weights = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if weights is None:
        raise InputError(f"{folder}: no weights in one file; looked for {', '.join(WEIGHTS)}")
    vocabulary, notes = _read_tokenizer(folder)
    loaded = load_parameters(weights, "bert", config, adds_task)
    if (folder / MODULES).is_file():
        notes = (*notes, AFTER_ENCODER)
    return assembled(folder, NAME, loaded, vocabulary, notes)


def cannot_hold(model: Model) -> list[Obstacle]:
    """Return what a BERT cannot hold of a model."""
    found = [*lost_heads(model), *vocabulary_obstacles(model.vocabulary), *width_obstacles(model.config, "BERT")]
    if model.config.use_relative_position and model.parameters[RELATIVE].any():
        found.append(Obstacle("relative position: BERT has no bias by distance, so the outputs change"))
    return found


def write(model: Model, folder: Path, name: str) -> None:
    """Write the files of a model into an empty folder that will have the given name."""
    config, has_head = model.config, has_token_head(model)
    arrays = held_parameters(model)
    arrays.pop(RELATIVE, None)
    theirs = from_ours(arrays, "bert", config.num_hidden_layers, with_prefix=has_head)
    # transformers refuses a file that does not say that it holds PyTorch's layout.
    write_safetensors(folder / WEIGHTS[0], theirs, {"format": "pt"})
    settings = {
        "architectures": ["BertForMaskedLM" if has_head else "BertModel"],
        "model_type": "bert",
        **bert_settings(config, len(arrays["word_embedding"])),
        "position_embedding_type": "absolute",
        **({} if config.use_sentence_embedding else {SEGMENTS_KEY: False}),
        "pad_token_id": model.vocabulary.pad,
    }
    write_settings(folder / CONFIG, settings)
    rules = {"strip_accents": None, "tokenize_chinese_chars": True}
    tokenizer_config = tokenizer_settings(model.vocabulary, "BertTokenizer", config.max_position_embeddings)
    write_settings(folder / TOKENIZER_SETTINGS, tokenizer_config | rules)
    write_vocabulary(model.vocabulary, folder)


def _is_bert(settings: dict[str, Any], name: str) -> bool:
    """Return whether settings are those of a BERT. Old files name only the class, in `architectures`, or nothing."""
    if "model_type" in settings:
        return settings["model_type"] in MODEL_TYPES
    classes = settings.get("architectures", ["Bert"] if name == OLD_CONFIG else None)
    return isinstance(classes, list) and any(isinstance(name, str) and name.startswith("Bert") for name in classes)


def _read_tokenizer(folder: Path) -> tuple[Vocabulary, tuple[str, ...]]:
    """Return the vocabulary in a folder, and notes on how our tokenizer differs from the folder's.

    Raises InputError if a file is missing or damaged, or if it is the tokenizer of another kind of model.
    """
    tokenizer = read_json(folder / TOKENIZER, MAX_TOKENIZER_BYTES) if (folder / TOKENIZER).is_file() else {}
    settings = read_json(folder / TOKENIZER_SETTINGS) if (folder / TOKENIZER_SETTINGS).is_file() else {}
    # As in transformers, tokenizer_config.json comes before the normalizer in tokenizer.json.
    said = _renamed(tokenizer.get("normalizer")) | settings
    lowercase = flag(said, LOWERCASE, True, str(folder / TOKENIZER_SETTINGS))
    notes = [] if LOWERCASE in said else [ASSUMED]
    kind = said.get("word_tokenizer_type", "basic")
    if kind != "basic":
        raise InputError(f"{folder / TOKENIZER_SETTINGS}: word_tokenizer_type is {kind!r}; only BERT's own can be read")
    for key, usual in (("strip_accents", lowercase), ("tokenize_chinese_chars", True), ("do_basic_tokenize", True)):
        value = said.get(key, usual)
        if value is not None and value != usual:
            notes.append(
                f"the folder's tokenizer: {key} is {value}, but ours works as with {usual}: token IDs may differ"
            )
    if (folder / VOCABULARY).is_file():
        vocabulary = load_vocabulary(folder / VOCABULARY, lowercase)
    elif tokenizer:
        vocabulary = _vocabulary_of(tokenizer, lowercase, str(folder / TOKENIZER))
    else:
        raise InputError(f"{folder}: has no vocabulary; put the model's {VOCABULARY} or {TOKENIZER} there")
    added = set(read_json(folder / ADDED_TOKENS)) if (folder / ADDED_TOKENS).is_file() else set()
    entries = tokenizer.get("added_tokens")
    for entry in entries if isinstance(entries, list) else []:
        added |= {entry["content"]} if isinstance(entry, dict) and isinstance(entry.get("content"), str) else set()
    if unread := sorted(added - {*vocabulary.tokens}):
        more = f" and {len(unread) - MAX_LISTED} more" if len(unread) > MAX_LISTED else ""
        listed = ", ".join(unread[:MAX_LISTED])
        notes.append(f"added tokens, which are not read: {listed}{more}; token IDs may differ")
    return vocabulary, tuple(notes)


def _renamed(normalizer: Any) -> dict[str, Any]:
    """Return the settings of a normalizer in tokenizer.json under the keys of tokenizer_config.json."""
    found = normalizer if isinstance(normalizer, dict) else {}
    return {new: found[old] for old, new in _NORMALIZER_KEYS.items() if old in found}


def _vocabulary_of(tokenizer: dict[str, Any], lowercase: bool, source: str) -> Vocabulary:
    """Return the vocabulary in the content of tokenizer.json; raises InputError unless it is WordPiece."""
    model = tokenizer.get("model")
    ids = model.get("vocab") if isinstance(model, dict) else None
    # Old files do not name the type.
    if not isinstance(model, dict) or model.get("type", "WordPiece") != "WordPiece" or not isinstance(ids, dict):
        raise InputError(f"{source}: not a WordPiece tokenizer; put the model's {VOCABULARY} there")
    if model.get("continuing_subword_prefix", "##") != "##":
        raise InputError(f"{source}: continuing_subword_prefix is not ##; only BERT's own can be read")
    is_number = (type(number) is int and 0 <= number < MAX_ROWS_PER_TOKEN * len(ids) for number in ids.values())
    if not all(is_number) or len(set(ids.values())) < len(ids):
        raise InputError(f"{source}: the IDs of its tokens are not 0 to {len(ids) - 1}")
    if unwritable := next(filter(UNWRITABLE.search, ids), None):
        raise InputError(f"{source}: the token {quoted(unwritable)} cannot be a line of {VOCABULARY}")
    # A token that stands twice in vocab.txt has its later ID here, and leaves a hole. No word is spelled with a space.
    token_of = {number: token for token, number in ids.items()}
    tokens = [token_of.get(number, f"[unused row {number}]") for number in range(max(token_of, default=-1) + 1)]
    return WordPieceVocabulary(tokens, lowercase, source)


FORMAT = Format(NAME, LOOKS_FOR, detect, read, cannot_hold, write)
