"""The tokenizer files of a Hugging Face BERT: vocab.txt or tokenizer.json, and tokenizer_config.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ernie_gram.formats.settings import LOWERCASE, flag
from ernie_gram.formats.untrusted.json_file import read_json
from reader.errors import InputError
from reader.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from reader.tokenization.vocabulary_file import load_vocabulary
from reader.tokenization.wordpiece import WordPieceVocabulary

VOCABULARY, TOKENIZER, SETTINGS = "vocab.txt", "tokenizer.json", "tokenizer_config.json"
MAX_TOKENIZER_BYTES = 100_000_000
SPECIAL_KEYS = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
ASSUMED = f"{SETTINGS} does not say whether text becomes lower case: taken as true, as transformers does"


def read_tokenizer(folder: Path) -> tuple[Vocabulary | None, tuple[str, ...]]:
    """Return the vocabulary in a folder, or None, and notes on what our tokenizer does in another way.

    Raises InputError if a file is damaged, or if it is the tokenizer of another kind of model.
    """
    tokenizer = read_json(folder / TOKENIZER, MAX_TOKENIZER_BYTES) if (folder / TOKENIZER).is_file() else {}
    settings = read_json(folder / SETTINGS) if (folder / SETTINGS).is_file() else {}
    normalizer = tokenizer.get("normalizer") or {}
    said = settings if LOWERCASE in settings else _renamed(normalizer)
    lowercase = flag(said, LOWERCASE, True, str(folder / SETTINGS))
    notes = [] if LOWERCASE in said else [ASSUMED]
    for key, usual in (("strip_accents", lowercase), ("tokenize_chinese_chars", True)):
        value = settings.get(key, usual)
        if value is not None and value != usual:
            notes.append(f"{SETTINGS}: {key} is {value}, but our tokenizer works as with {usual}: token IDs may differ")
    if (folder / VOCABULARY).is_file():
        return load_vocabulary(folder / VOCABULARY, lowercase), tuple(notes)
    if not tokenizer:
        return None, ()
    return _vocabulary_of(tokenizer, lowercase, str(folder / TOKENIZER)), tuple(notes)


def write_tokenizer(vocabulary: Vocabulary, max_tokens: int, folder: Path) -> None:
    """Write vocab.txt, and tokenizer_config.json for BERT's tokenizer in transformers."""
    (folder / VOCABULARY).write_bytes(vocabulary.content)
    settings = {
        "tokenizer_class": "BertTokenizer",
        LOWERCASE: vocabulary.lowercase,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "model_max_length": max_tokens,
        **dict(zip(SPECIAL_KEYS, SPECIAL_TOKENS, strict=True)),
    }
    (folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def _renamed(normalizer: Any) -> dict[str, Any]:
    """Return the setting for lower case of a normalizer in tokenizer.json under the key of tokenizer_config.json."""
    return {LOWERCASE: normalizer["lowercase"]} if isinstance(normalizer, dict) and "lowercase" in normalizer else {}


def _vocabulary_of(tokenizer: dict[str, Any], lowercase: bool, source: str) -> Vocabulary:
    """Return the vocabulary in the content of tokenizer.json; raises InputError unless it is WordPiece."""
    model = tokenizer.get("model")
    ids = model.get("vocab") if isinstance(model, dict) else None
    # Old files do not name the type.
    if not isinstance(model, dict) or model.get("type", "WordPiece") != "WordPiece" or not isinstance(ids, dict):
        raise InputError(f"{source}: not a WordPiece tokenizer; put the model's {VOCABULARY} there")
    by_id = {number: token for token, number in ids.items()}
    if any(type(number) is not int for number in by_id) or sorted(by_id) != list(range(len(ids))):
        raise InputError(f"{source}: the IDs of its tokens are not 0 to {len(ids) - 1}")
    return WordPieceVocabulary([by_id[i] for i in range(len(ids))], lowercase, source)
