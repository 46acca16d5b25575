"""The n-gram lexicon V_N (paper, section 3.5) and its files.

`lexicon.tsv` is readable by people: a header, then one line `ngram<TAB>count<TAB>t` per n-gram, its words joined by
spaces. Lines are sorted by the number of words, then by t in descending order. `lexicon.tsv.json` in the same folder
describes the vocabulary, text and settings that produced the lexicon. N-gram i of the file has identity F + i.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reader.errors import InputError, counted, located, print_note
from reader.system.arrays import Bools, Float64s, Int32s, Int64s, offsets_of
from reader.system.atomic_files import sha256_of, write_atomically
from reader.system.hash_tables import PackedStrings, take_strings
from reader.system.untrusted_text import read_json, record_of
from reader.tokenization.basic_tokenizer import SEGMENTERS, segmenter, split_words
from reader.tokenization.vocabulary import PieceTable, Vocabulary

HEADER = "ngram\tcount\tt"
OWN_LIST = "; a list of your own is read with a --vocab, by `corpus`"


class NGrams(NamedTuple):
    """N-grams: their texts, which are words joined by single spaces; counts, int64 [n]; t, float64 [n]."""

    texts: list[str]
    counts: Int64s
    t: Float64s

    @property
    def orders(self) -> Int64s:
        """The number of words of each n-gram, int64 [n]."""
        return np.fromiter((text.count(" ") + 1 for text in self.texts), np.int64, len(self.texts))

    def select(self, keep: Bools) -> NGrams:
        """Return the n-grams for which `keep`, bool [n], is true."""
        return NGrams([*compress(self.texts, keep)], self.counts[keep], self.t[keep])


NO_NGRAMS = NGrams([], np.zeros(0, np.int64), np.zeros(0, np.float64))


@dataclass(frozen=True)
class LexiconInfo:
    """The vocabulary, text and settings that produced a lexicon.

    Attributes:
        vocabulary: fingerprint of the vocabulary whose rules split the text into words.
        han: the segmenter for words of Han characters (see basic_tokenizer.py).
        text: digest of the counted text (see text_files.py).
        totals: order l -> N_l.
        top: order l -> k_l as requested.
        max_ngram_tokens: n-grams of more sub-word tokens are left out; so are n-grams of a single token.
        left_out: number of n-grams left out by this rule, among the best k_l.
        min_count: n-grams that occur less often are left out.
        sha256: SHA-256 of the TSV file, or "" if it is not written yet.
        own: file name of the list that was read instead of counting a text (own_lexicon), with the counts that it has;
            "", and not in the file, if the n-grams were counted.
    """

    vocabulary: str
    han: str
    text: str
    totals: dict[str, int]
    top: dict[str, int]
    max_ngram_tokens: int
    left_out: int
    min_count: int
    sha256: str = ""
    own: str = ""

    @classmethod
    def read(cls, lexicon: Path) -> LexiconInfo:
        """Read the description of a lexicon. Raises InputError if it is missing or damaged."""
        path = info_path(lexicon)
        if not path.is_file():
            raise InputError(f"{path}: missing; the lexicon was not finished, build it again{OWN_LIST}")
        info = record_of(cls, read_json(path), str(path))
        if info.han not in SEGMENTERS:
            raise InputError(f"{path}: han: {info.han!r} is not one of {', '.join(SEGMENTERS)}")
        return info


@dataclass(frozen=True, repr=False)
class Lexicon:
    """N-grams in file order, a description of how they were made, and the file they were read from, if any."""

    ngrams: NGrams
    info: LexiconInfo
    path: Path | None = None

    def __len__(self) -> int:
        return len(self.ngrams.counts)

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and self.find(text) is not None

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the n-grams, and of the vocabulary and the segmenter that split the text."""
        sha256 = self.info.sha256 or hashlib.sha256(self.content).hexdigest()
        content = f"{self.info.vocabulary}\n{self.info.han}\n{sha256}"
        return hashlib.sha256(content.encode()).hexdigest()

    def find(self, text: str) -> int | None:
        """Return the index of an n-gram, given as its words joined by spaces, in `ngrams`; None if it is not there."""
        return self._indices.get(text)

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {text: index for index, text in enumerate(self.ngrams.texts)}

    def save(self, path: Path) -> None:
        """Write the TSV, then the JSON with its SHA-256. A TSV without its JSON is incomplete and is not loaded."""
        content = self.content
        write_atomically(path, content)
        info = asdict(self.info) | {"sha256": hashlib.sha256(content).hexdigest()}
        kept = {key: value for key, value in info.items() if key != "own" or value}
        write_atomically(info_path(path), json.dumps(kept, indent=1) + "\n")

    @property
    def content(self) -> bytes:
        """The content of the TSV."""
        columns = self.ngrams.texts, self.ngrams.counts.tolist(), self.ngrams.t.tolist()
        return "".join([f"{HEADER}\n", *map("{}\t{}\t{!r}\n".format, *columns)]).encode()

    @classmethod
    def load(cls, path: str | Path, vocabulary: Vocabulary | None = None) -> Lexicon:
        """Read a lexicon. Raises InputError if it is missing, damaged or edited.

        Raises it too if `vocabulary` is given, and is not the one that the lexicon was made with.
        """
        path = Path(path)
        if not path.is_file():
            raise InputError(f"{path}: no such lexicon; make one with `ernie-gram lexicon`")
        info = LexiconInfo.read(path)
        if sha256_of(path) != info.sha256:
            different = f"its SHA-256 differs from the one in {info_path(path).name}"
            raise InputError(f"{path}: {different}; build it again{OWN_LIST}")
        if vocabulary is not None and vocabulary.fingerprint != info.vocabulary:
            raise InputError(f"{path}: was made with another vocabulary, or another --cased; give the same")
        try:
            header, _, rows = path.read_text(encoding="utf-8").partition("\n")
            fields = rows.replace("\n", "\t").split("\t")[:-1]
            texts, counts, t = (fields[column::3] for column in range(3))
            ngrams = NGrams(texts, np.fromiter(map(int, counts), np.int64), np.fromiter(map(float, t), np.float64))
            is_valid = header == HEADER and len({*texts}) == len(texts) == len(t) and _are_valid(ngrams)
        except (ValueError, OverflowError):
            is_valid = False
        if not is_valid:
            raise InputError(f"{path}: damaged; build it again")
        return cls(ngrams, info, path)


def _are_valid(ngrams: NGrams) -> bool:
    """Return whether n-grams have valid texts, counts and scores, and are sorted as in a lexicon."""
    if any("  " in f" {text} " for text in ngrams.texts):
        return False
    t, longer = ngrams.t, np.diff(ngrams.orders)
    in_order = (longer > 0) | ((longer == 0) & (t[1:] <= t[:-1]))
    return bool(in_order.all() and (ngrams.counts >= 0).all() and not np.isnan(t).any())


def index_words(texts: list[str]) -> tuple[list[str], Int32s, Int64s]:
    """Return the distinct words of n-grams, the indices of the words of all n-grams, and where each n-gram begins.

    Returns:
        the words; int32, indices into them; int64 [n + 1].
    """
    flat = " ".join(texts).split(" ") if texts else []
    index = {word: i for i, word in enumerate(dict.fromkeys(flat))}
    word_ids = np.fromiter(map(index.__getitem__, flat), np.int32, len(flat))
    return list(index), word_ids, offsets_of(np.array([text.count(" ") + 1 for text in texts], np.int64))


def spell(
    words: list[str], word_ids: Int32s, ngram_offsets: Int64s, table: PieceTable, unknown: int
) -> tuple[Int32s, Int64s, Bools]:
    """Return the tokens of n-grams, where those of each begin, and which n-grams can be units of a corpus.

    Such an n-gram has several tokens, and none of them is `unknown`, the ID of [UNK].

    Args:
        words, word_ids, ngram_offsets: the n-grams (see index_words).
        table: without words; it gets the words of the n-grams.
    Returns:
        int32, token IDs; int64 [n + 1]; bool [n].
    """
    table.extend(words)
    word_ends, tokens = take_strings(PackedStrings(table.offsets, table.pieces), word_ids)
    offsets = word_ends[ngram_offsets]
    is_known = np.diff(offsets_of(tokens == unknown)[offsets]) == 0
    return tokens, offsets, is_known & (np.diff(offsets) > 1)


def segmenter_of(lexicon: Lexicon | None) -> str:
    """Return the lexicon's segmenter (see basic_tokenizer.py), or "char" (Han characters as words) for None."""
    return lexicon.info.han if lexicon else "char"


def is_own_list(path: Path) -> bool:
    """Return whether a file is a list of the user's own, or an edited lexicon, and not a lexicon that was made here."""
    return path.is_file() and not (info_path(path).is_file() and sha256_of(path) == LexiconInfo.read(path).sha256)


def own_lexicon(path: Path, vocabulary: Vocabulary) -> Lexicon:
    """Return the lexicon that a list of the user's own stands for (see `is_own_list`).

    It has one phrase a line, with its count and t if known. The phrases are split into words as text is. A phrase that
    is a single token, or that has a word which the vocabulary cannot spell, is no unit, and is left out with a note.
    Raises InputError that names the line that is wrong, or if no phrase of the list can be a unit.
    """
    han = LexiconInfo.read(path).han if info_path(path).is_file() else "char"
    phrases = _phrases(path, vocabulary.lowercase, han)
    _, offsets, is_unit = spell(*index_words(phrases.texts), PieceTable(vocabulary), vocabulary.unk)
    left_out = phrases.select(~is_unit).texts
    why = "that are a single token or that the vocabulary cannot spell"
    note = f"; left out: {counted(len(left_out), 'phrase')} {why}, such as {left_out[0]!r}" if left_out else ""
    if not is_unit.any():
        raise InputError(f"{path}: a list without an n-gram{note}")
    print_note(f"{path}: a list of your own, not counted here: {counted(int(is_unit.sum()), 'n-gram')}{note}")
    info = LexiconInfo(
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
    return Lexicon(phrases.select(is_unit), info)


def _phrases(path: Path, lowercase: bool, han: str) -> NGrams:
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


def info_path(path: Path) -> Path:
    """Return the path of the JSON file that describes the lexicon at `path`."""
    return path.with_name(path.name + ".json")
