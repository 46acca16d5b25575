"""Words, by BERT's rules for characters, which upstream ERNIE shares.

White space parts words; every Han character and every punctuation mark is one of its own; lower case without accents
where the vocabulary is uncased. What becomes of a word then is the vocabulary's affair: see vocabulary.py.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from itertools import groupby

# Control characters that str.split() would take for white space; BERT drops them and joins what they parted.
_NOT_SPACE = {ord(c): None for c in "\x0b\x0c\x1c\x1d\x1e\x1f\x85"}

_HAN_RANGES = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def is_han(character: str) -> bool:
    code = ord(character)
    return code >= 0x3400 and any(first <= code <= last for first, last in _HAN_RANGES)


def is_dropped(character: str) -> bool:
    """Control, format, private and unassigned characters, and the replacement character."""
    return character == "\ufffd" or unicodedata.category(character)[0] == "C"


def is_punctuation(character: str) -> bool:
    """Unicode punctuation, and every ASCII character that is neither letter nor digit, such as $ or ^."""
    if character.isascii():
        return not character.isalnum()
    return unicodedata.category(character)[0] == "P"


def fold(text: str) -> str:
    """Lower case without accents."""
    folded = unicodedata.normalize("NFD", text.lower())
    return "".join(character for character in folded if unicodedata.category(character) != "Mn")


def split_words(text: str, lowercase: bool, cut_han: Callable[[str], list[str]] = list) -> list[str]:
    """Split a text into words, as BERT's basic tokenizer does."""
    return [word for run in text.translate(_NOT_SPACE).split() for word in split_run(run, lowercase, cut_han)]


def split_run(run: str, lowercase: bool, cut_han: Callable[[str], list[str]] = list) -> list[str]:
    """Split a text without white space into words; `cut_han` gives those of Han characters in a row."""
    if run.isascii() and run.isalnum():
        return [run.lower() if lowercase else run]
    words: list[str] = []
    # Upstream's order: Han characters are set apart before folding, punctuation after it.
    for in_han, group in groupby((c for c in run if not is_dropped(c)), key=is_han):
        part = "".join(group)
        part = fold(part) if lowercase else part
        if in_han:
            words.extend(cut_han(part))
        else:
            words.extend("".join(f" {c} " if is_punctuation(c) else c for c in part).split())
    return words


def holds_text(word: str) -> bool:
    """Whether a word holds a letter, a digit or a Han character; other words end an n-gram."""
    return word.isalnum() or any(character.isalnum() for character in word)
