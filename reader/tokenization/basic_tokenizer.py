"""Split text into words by the rules of BERT's basic tokenizer, which upstream ERNIE also uses.

White space separates words. Every Han character and every punctuation mark is a separate word;
a segmenter may form words of consecutive Han characters instead, and has no influence on other text. For an uncased
vocabulary, text is converted to lower case and accents are removed. The vocabulary then splits each word into tokens
(see vocabulary.py).

`split_run_with_spans` also records where each character of a word is in the text. Folding changes lengths: "İ" becomes
"i", a Hangul syllable becomes two or three letters, and an accent disappears. Every character of a word therefore has
its own span of characters of the original text.
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

# The available segmenters. The last two need no dictionary.
SEGMENTERS = ("jieba", "char", "space")

CutFunction = Callable[[str], list[str]]


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


def segmenter(name: str) -> CutFunction:
    """Return the function that splits a run of Han characters into words.

    jieba: by jieba's rules and dictionary, with the library rjieba. Its words are those of jieba, unless two
        alternatives are equally probable, or a character is outside of the Basic Multilingual Plane.
    char: every character is a word.
    space: every run is a word, for text whose words are already separated by spaces.
    """
    if name == "char":
        return list
    if name == "space":
        return lambda run: [run]
    # Imported here because its dictionary loads slowly, and most text does not need it.
    import rjieba

    cut: CutFunction = rjieba.cut
    return cut


def split_words(text: str, lowercase: bool, cut_han: CutFunction = list) -> list[str]:
    """Return the words of a text, as split by BERT's basic tokenizer. See `split_run` for `cut_han`."""
    return [word for run in text.translate(_NOT_SPACE).split() for word in split_run(run, lowercase, cut_han)]


def split_run(run: str, lowercase: bool, cut_han: CutFunction = list) -> list[str]:
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


def has_words(text: str) -> bool:
    """Return whether a text has a word whatever the vocabulary; dropped characters and accents alone are none."""
    return any(not c.isspace() and not is_dropped(c) and unicodedata.category(c) != "Mn" for c in text)


def split_run_with_spans(
    run: str, lowercase: bool, cut_han: CutFunction = list, offset: int = 0
) -> list[tuple[str, list[int], list[int]]]:
    """Return the words of a text that contains no white space: those of `split_run`, each with its starts and ends.

    The original characters of word[i] are those in [starts[i], ends[i]). Both lists are in ascending order, but not
    strictly: several characters may come from the same original character.
    Dropped characters belong to no span. Accents that folding removes belong to the span of the character before them,
    if that character is kept, so that the text of a span is never cut between a letter and its accents.

    Args:
        run, lowercase, cut_han: see `split_run`.
        offset: position of `run` in the original text.
    """
    # The folded text differs from the folded characters only in the order of accents and in the form of a final sigma.
    folded = [fold(character) for character in run] if lowercase and not run.isascii() else list(run)
    ends = list(range(offset + 1, offset + len(run) + 1))
    for i in range(len(run) - 1, 0, -1):
        if not folded[i]:
            ends[i - 1] = ends[i]
    places = [i for i, character in enumerate(run) if not is_dropped(character) for _ in folded[i]]
    words: list[tuple[str, list[int], list[int]]] = []
    first = 0
    for word in split_run(run, lowercase, cut_han):
        of_word = places[first : first + len(word)]
        words.append((word, [offset + i for i in of_word], [ends[i] for i in of_word]))
        first += len(word)
    return words
