"""Split text into words by the rules of BERT's basic tokenizer, which upstream ERNIE also uses.

White space separates words. Every Han character and every punctuation mark is a separate word. For an uncased
vocabulary, text is converted to lower case and accents are removed. The vocabulary then splits each word into tokens
(see vocabulary.py).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from itertools import groupby

# Control characters that str.split() treats as white space. BERT removes them without splitting the text there.
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
    """Return whether a character is removed: control, format, private-use, unassigned and replacement characters."""
    return character == "\ufffd" or unicodedata.category(character)[0] == "C"


def is_punctuation(character: str) -> bool:
    """Return whether a character is Unicode punctuation, or ASCII but neither letter nor digit, such as $ or ^."""
    if character.isascii():
        return not character.isalnum()
    return unicodedata.category(character)[0] == "P"


def fold(text: str) -> str:
    """Return a text in lower case and without accents."""
    folded = unicodedata.normalize("NFD", text.lower())
    return "".join(character for character in folded if unicodedata.category(character) != "Mn")


def split_words(text: str, lowercase: bool, cut_han: Callable[[str], list[str]] = list) -> list[str]:
    """Return the words of a text, as split by BERT's basic tokenizer. See `split_run` for `cut_han`."""
    return [word for run in text.translate(_NOT_SPACE).split() for word in split_run(run, lowercase, cut_han)]


def split_run(run: str, lowercase: bool, cut_han: Callable[[str], list[str]] = list) -> list[str]:
    """Return the words of a text that contains no white space.

    `cut_han` splits a sequence of consecutive Han characters into words; by default, each character is a word.
    """
    if run.isascii() and run.isalnum():
        return [run.lower() if lowercase else run]
    words: list[str] = []
    # As upstream does, Han characters are separated before folding, and punctuation after it.
    for in_han, group in groupby((c for c in run if not is_dropped(c)), key=is_han):
        part = "".join(group)
        part = fold(part) if lowercase else part
        if in_han:
            words.extend(cut_han(part))
        else:
            words.extend("".join(f" {c} " if is_punctuation(c) else c for c in part).split())
    return words


def holds_text(word: str) -> bool:
    """Return whether a word contains a letter, a digit or a Han character. N-grams contain only such words."""
    return word.isalnum() or any(character.isalnum() for character in word)
