"""Read and write the vocabulary in a model folder, and combine it with a model of another project.

The tokenizer of a BERT is read as transformers does (tried: 4.57 and 5.24). What that does depends on `tokenizer_class`
in tokenizer_config.json. With a general class, it applies tokenizer.json as it is. With BERT's class, the default, the
rules are those of tokenizer_config.json or else BERT's own, and the normalizer in tokenizer.json is ignored (except
that version 4 applies one that is not a BertNormalizer itself, such as a Sequence). Both versions find added and
special tokens in a text, and give each one ID. A note says why ours may give other token IDs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ernie_gram.formats.parameters import LOWERCASE, Settings, flag, some_of, write_settings
from reader.errors import InputError, quoted
from reader.system.untrusted_text import read_json
from reader.tokenization.vocabulary import CLS, MASK, PAD, SEP, SPECIAL_TOKENS, UNK, Vocabulary
from reader.tokenization.vocabulary_file import FILE_NAMES, load_vocabulary, vocabulary_in
from reader.tokenization.wordpiece import WordPieceVocabulary

VOCABULARY, TOKENIZER, TOKENIZER_SETTINGS = "vocab.txt", "tokenizer.json", "tokenizer_config.json"
ADDED_TOKENS, SPECIAL_TOKENS_MAP = "added_tokens.json", "special_tokens_map.json"
MAX_TOKENIZER_BYTES = 100_000_000
MAX_ROWS_PER_TOKEN = 2
# A tab, a line break or half a character: what was written could not be read back.
UNWRITABLE = re.compile(r"[\t\n\r\ud800-\udfff]")
# Classes with which transformers applies tokenizer.json as it is.
GENERAL_CLASSES = ("PreTrainedTokenizerFast", "TokenizersBackend")
# Types in tokenizer.json whose rules are ours; old files do not name them.
OWN_TYPES = (None, "BertNormalizer", "BertPreTokenizer")


def read_vocabulary(folder: Path, settings: Settings, source: str) -> Vocabulary:
    """Return the vocabulary in a folder, whose settings stand in `source`; raises InputError if one is damaged."""
    path = vocabulary_in(folder)
    if path is None:
        raise InputError(f"{folder}: has no vocabulary; put the model's {' or '.join(FILE_NAMES)} there")
    return load_vocabulary(path, flag(settings, LOWERCASE, True, source))


def write_tokenizer(vocabulary: Vocabulary, folder: Path, class_name: str, max_tokens: int) -> None:
    """Write a vocabulary and the settings of its tokenizer, which cuts texts at `max_tokens` tokens if asked to."""
    special = {"pad_token": PAD, "unk_token": UNK, "cls_token": CLS, "sep_token": SEP, "mask_token": MASK}
    settings = {"tokenizer_class": class_name, LOWERCASE: vocabulary.lowercase, "model_max_length": max_tokens}
    write_settings(folder / TOKENIZER_SETTINGS, settings | special)
    write_settings(folder / SPECIAL_TOKENS_MAP, special)
    (folder / vocabulary.file_name).write_bytes(vocabulary.content)


def check_vocabulary(vocabulary: Vocabulary, num_rows: int, folder: Path) -> None:
    """Raise InputError if a vocabulary has more tokens than the token embedding has rows."""
    if len(vocabulary) > num_rows:
        raise InputError(
            f"{folder / vocabulary.file_name}: {len(vocabulary):,} tokens, but the token embedding has {num_rows:,} "
            "rows; put the vocabulary of this model there"
        )


def read_tokenizer(folder: Path) -> tuple[Vocabulary, list[str]]:
    """Return the vocabulary in a folder, and a note if our tokenizer gives other IDs than the folder's.

    Raises InputError if a file is missing or damaged, or if it is the tokenizer of another kind of model.
    """
    tokenizer, settings = _json(folder / TOKENIZER, MAX_TOKENIZER_BYTES), _json(folder / TOKENIZER_SETTINGS)
    source = str(folder / TOKENIZER_SETTINGS)
    kind = settings.get("word_tokenizer_type", "basic")
    if kind != "basic":
        raise InputError(f"{source}: word_tokenizer_type is {kind!r}; only BERT's own can be read")
    normalizers = [*_steps(tokenizer.get("normalizer", {}), "normalizers")]
    if tokenizer and settings.get("tokenizer_class") in GENERAL_CLASSES:
        known = [each for each in normalizers if each.get("type") in (*OWN_TYPES, "Lowercase")]
        rules = {key: value for each in known for key, value in each.items()}
        lowercase = flag(rules, "lowercase", bool(known), source)
    else:
        rules, lowercase = settings, flag(settings, LOWERCASE, True, source)
    if (folder / VOCABULARY).is_file():
        vocabulary = load_vocabulary(folder / VOCABULARY, lowercase)
    elif tokenizer:
        vocabulary = _vocabulary_of(tokenizer, lowercase, str(folder / TOKENIZER))
    else:
        raise InputError(f"{folder}: has no vocabulary; put the model's {VOCABULARY} or {TOKENIZER} there")
    always = ("tokenize_chinese_chars", "handle_chinese_chars", "clean_text", "do_basic_tokenize")
    usual = {"strip_accents": lowercase, **dict.fromkeys(always, True)}
    other = [f"{key} {rules[key]}" for key, ours in usual.items() if rules.get(key) not in (None, ours)]
    steps = [*normalizers, *_steps(tokenizer.get("pre_tokenizer", {}), "pretokenizers")]
    other += [str(step["type"]) for step in steps if step.get("type") not in OWN_TYPES]
    names = ("additional_special_tokens", "extra_special_tokens", "added_tokens_decoder")
    places = [tokenizer.get("added_tokens"), [*_json(folder / ADDED_TOKENS)], _json(folder / SPECIAL_TOKENS_MAP)]
    added = sorted({*_contents([*places, *map(settings.get, names)])} - {*SPECIAL_TOKENS})
    other += [f"the added tokens {some_of(added)}"] if added else []
    return vocabulary, [f"the folder's tokenizer has {', '.join(other)}: token IDs may differ"] if other else []


def _json(path: Path, *limit: int) -> dict[str, Any]:
    return read_json(path, *limit) if path.is_file() else {}


def _steps(part: Any, key: str) -> Iterator[dict[str, Any]]:
    """Yield the normalizers or pre-tokenizers in tokenizer.json, also in a Sequence."""
    if isinstance(part, dict) and isinstance(part.get(key), list):
        for each in part[key]:
            yield from _steps(each, key)
    else:
        yield part if isinstance(part, dict) else {"type": "null"}


def _contents(tokens: Any) -> Iterator[str]:
    """Yield the tokens in a text, an object with `content`, or a list or an object of such."""
    if isinstance(tokens, str):
        yield tokens
    elif isinstance(tokens, dict) and "content" in tokens:
        yield from _contents(tokens["content"])
    elif isinstance(tokens, (list, dict)):
        for each in tokens.values() if isinstance(tokens, dict) else tokens:
            yield from _contents(each)


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
