"""A list of phrases of one's own, or an edited lexicon, as a lexicon: one phrase a line, with its count and t if known.

The phrases are split into words as text is. A phrase that is a single token, or that has a word which the vocabulary
cannot spell, is no unit, and is left out with a note.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from reader.errors import InputError, counted, located, print_note
from reader.lexicon.lexicon_file import HEADER, Lexicon, LexiconInfo, NGrams, index_words, info_path, spell
from reader.tokenization.basic_tokenizer import segmenter, split_words
from reader.tokenization.vocabulary import PieceTable, Vocabulary


def own_lexicon(path: Path, vocabulary: Vocabulary) -> Lexicon:
    """Return the lexicon that a list of the user's own stands for (see `is_own_list`).

    Raises InputError that names the line that is wrong, or if no phrase of the list can be a unit.
    """
    han = LexiconInfo.read(path).han if info_path(path).is_file() else "char"
    phrases = _read(path, vocabulary.lowercase, han)
    _, offsets, is_unit = spell(*index_words(phrases.texts), PieceTable(vocabulary), vocabulary.unk)
    left_out = phrases.select(~is_unit).texts
    why = "that are a single token or that the vocabulary cannot spell"
    note = f"; left out: {counted(len(left_out), 'phrase')} {why}, such as {left_out[0]!r}" if left_out else ""
    if not is_unit.any():
        raise InputError(f"{path}: a list without an n-gram{note}")
    print_note(f"{path}: a list of your own, not counted here: {counted(int(is_unit.sum()), 'n-gram')}{note}")
    made = LexiconInfo(
        vocabulary=vocabulary.fingerprint,
        han=han,
        text="",
        totals={},
        top={},
        max_ngram_tokens=int(np.diff(offsets)[is_unit].max()),
        left_out=len(left_out),
        min_count=0,
        own=path.name,
    )
    lexicon = Lexicon(phrases.select(is_unit), made)
    return replace(lexicon, info=replace(made, sha256=hashlib.sha256(lexicon.content).hexdigest()))


def _read(path: Path, lowercase: bool, han: str) -> NGrams:
    """Return the phrases of a list, each once; raises InputError that names the line that is wrong."""
    # In an edited lexicon of Chinese words, spaces separate the words.
    cut_han = segmenter("char" if han == "char" else "space")
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8: {error.reason}") from error
    rows: dict[str, tuple[int, float]] = {}
    for number, line in enumerate(lines, 1):
        if number == 1 and HEADER.startswith(line):
            continue
        with located(f"{path}: line {number}"):
            text, count, t = _parse_row(line)
        if words := split_words(text, lowercase, cut_han):
            rows.setdefault(" ".join(words), (count, t))
    ranked = sorted(rows, key=lambda text: (text.count(" "), -rows[text][1]))
    counts, scores = ([rows[text][column] for text in ranked] for column in range(2))
    return NGrams(ranked, np.array(counts, np.int64), np.array(scores, np.float64))


def _parse_row(line: str) -> tuple[str, int, float]:
    """Return the n-gram, the count and t of a line; without a count or t, it is 0. Raises InputError."""
    text, count, t, *more = [*line.split("\t"), "0", "0"]
    try:
        numbers = int(count), float(t)
    except ValueError:
        numbers = -1, 0.0
    if not 0 <= numbers[0] < 1 << 63 or math.isnan(numbers[1]) or len(more) > 2:
        raise InputError("expected an n-gram, and after tabs its count and t")
    return text, *numbers
