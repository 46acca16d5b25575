"""Building a corpus: text -> units, segment by segment on all cores; stopped, it can go on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reader.corpus.boundaries import Units, cut_lines
from reader.corpus.memmap import FORMAT, LEXICON, Corpus, CorpusInfo, unit_dtype
from reader.errors import InputError
from reader.lexicon.lexicon_file import Lexicon, segmenter_of
from reader.lexicon.ngrams import NO_NGRAMS
from reader.system.atomic_files import atomic_folder, load_array, mapped_array, save_arrays
from reader.tables.string_table import PackedStrings, take_strings
from reader.tables.trie import build_trie
from reader.text.input_files import CORPUS_INFO
from reader.text.map_segments import Resources, map_segments
from reader.text.text_files import Segment, TextFiles
from reader.tokenization.piece_table import PieceTable
from reader.tokenization.vocabulary import Vocabulary
from reader.tokenization.word_index import WordIndex

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

# A process forgets the words it has met when they are more than this: text repeats itself, but memory is bounded.
MAX_WORDS_KNOWN = 1 << 20


class UnitCutter:
    """Text -> unit identities, for one vocabulary and one lexicon."""

    def __init__(self, vocabulary: Vocabulary, lexicon: Lexicon | None, segmenter: str = "") -> None:
        """Raises InputError if the lexicon was made for another vocabulary.

        Args:
            lexicon: whose n-grams become units; None: every unit is a token.
            segmenter: how words of Han characters are found (see segmenters.py); "": as `segmenter_of` has it.
        """
        if lexicon is not None and lexicon.info.vocabulary != vocabulary.fingerprint:
            raise InputError(
                "--lexicon: it was made with another vocabulary (or another --lowercase) than --vocab; build it again"
            )
        self.num_tokens = len(vocabulary)
        self._lowercase, self._han = vocabulary.lowercase, segmenter or segmenter_of(lexicon)
        ngrams = lexicon.ngrams if lexicon else NO_NGRAMS
        self._lexicon_words = ngrams.words
        self._pieces = PieceTable(vocabulary)
        self._forget()
        self._trie = build_trie(ngrams.numbers, ngrams.offsets, len(ngrams.words))
        self._pieces.extend(self._lexicon_words)
        word_ends, self.ngram_tokens = take_strings(
            PackedStrings(self._pieces.offsets, self._pieces.pieces), ngrams.numbers
        )
        self.ngram_offsets = word_ends[ngrams.offsets]

    def cut(self, text: bytes) -> Units:
        """The units of a text in UTF-8; raises UnicodeDecodeError if it is none."""
        if len(self._words) > MAX_WORDS_KNOWN + len(self._lexicon_words):
            self._forget()
        stream = self._words.encode(text)
        self._pieces.extend(self._words.words(len(self._pieces)))
        return cut_lines(stream, self._trie, self._pieces.offsets, self._pieces.pieces, self.num_tokens)

    def _forget(self) -> None:
        """Know the words of the lexicon only. They come first, so that a later one is in no n-gram."""
        self._words = WordIndex(self._lowercase, self._han)
        self._words.add(self._lexicon_words)
        self._pieces.truncate(min(len(self._pieces), len(self._lexicon_words)))


@dataclass(frozen=True)
class CutSegment:
    """A segment of text -> its folder: `units`, identities, and `documents`, int64, where in them one ends."""

    cutter: UnitCutter
    dtype: type[np.uint16] | type[np.uint32]

    def __call__(self, segment: Segment, folder: Path) -> None:
        cut = self.cutter.cut(segment.text())
        save_arrays(folder, units=cut.units.astype(self.dtype), documents=cut.documents)


def build_corpus(
    text: TextFiles,
    vocabulary: Vocabulary,
    lexicon: Lexicon | None,
    output: Path,
    folder: Path,
    resources: Resources,
) -> None:
    """Cut text into units and store them; the folder `output` appears when all is done.

    `folder` is for the segments that are finished (see work_folder.py). Raises InputError for bad text.
    """
    cutter = UnitCutter(vocabulary, lexicon)
    num_units = cutter.num_tokens + len(cutter.ngram_offsets) - 1
    dtype = unit_dtype(num_units)
    to_folder = CutSegment(cutter, dtype)
    segments, digest = map_segments(to_folder, text, folder / "cut", resources, "building", cutter.cut)
    made_with = MadeWith(vocabulary, lexicon, digest)
    if not any(len(mapped_array(segment, "units")) for segment in segments):
        raise InputError(f"{', '.join(map(str, text.paths))}: no words in it")
    # One after the other: what is mapped keeps a file open.
    parts = ((mapped_array(segment, "units"), load_array(segment, "documents")) for segment in segments)
    _write(output, made_with, Spelling(cutter.ngram_offsets, cutter.ngram_tokens), parts)


def join_corpora(paths: list[Path], output: Path) -> None:
    """Put corpora that were made with the same vocabulary and lexicon, as shards are, one after the other.

    The units are those of a corpus made of all their texts at once. Raises InputError if they do not go together.
    """
    first = Corpus(paths[0])
    infos = [Corpus(path).info for path in paths]
    for path, info in zip(paths, infos, strict=True):
        for what in ("vocabulary", "lexicon"):
            if getattr(info, what) != getattr(first.info, what):
                raise InputError(f"{path}: made with another {what} than {first.path}")
    text = hashlib.sha256("\n".join(info.text for info in infos).encode()).hexdigest()
    made_with = MadeWith(first.vocabulary, first.lexicon, text)
    # One after the other: what is mapped keeps files open.
    parts = ((np.asarray(corpus.units), np.asarray(corpus.documents[1:])) for corpus in map(Corpus, paths))
    _write(output, made_with, Spelling(first.ngram_offsets, first.ngram_tokens), parts)


class MadeWith(NamedTuple):
    """What a corpus is made of: a vocabulary, a lexicon if any, and a text, by its fingerprint."""

    vocabulary: Vocabulary
    lexicon: Lexicon | None
    text: str


class Spelling(NamedTuple):
    """The tokens of all n-grams: those of n-gram i are tokens[offsets[i]:offsets[i + 1]]."""

    offsets: Int64s
    tokens: Int32s


def _write(output: Path, made_with: MadeWith, spelling: Spelling, parts: Iterable[tuple[np.ndarray, Int64s]]) -> None:
    """Write a corpus of several parts: the units of each, and where in them documents end."""
    vocabulary, lexicon, text = made_with
    num_tokens, num_ngrams = len(vocabulary), len(spelling.offsets) - 1
    unit_counts = np.zeros(num_tokens + num_ngrams, np.int64)
    documents = [np.zeros(1, np.int64)]
    written = 0
    with atomic_folder(output) as partial:
        with (partial / "units.bin").open("wb") as file:
            for units, ends in parts:
                file.write(np.ascontiguousarray(units).data)
                unit_counts += np.bincount(units, minlength=len(unit_counts))
                documents.append(written + ends)
                written += len(units)
        # Two blank lines in a row end one document, not two.
        ends = np.unique(np.concatenate(documents))
        unit_tokens = np.concatenate([np.ones(num_tokens, np.int64), np.diff(spelling.offsets)])
        info = CorpusInfo(
            format=FORMAT,
            vocabulary=vocabulary.fingerprint,
            lexicon=lexicon.fingerprint if lexicon else "",
            text=text,
            lowercase=vocabulary.lowercase,
            num_tokens=num_tokens,
            num_ngrams=num_ngrams,
            documents=len(ends) - 1,
            units=written,
            tokens=int(unit_counts @ unit_tokens),
            ngram_units=int(unit_counts[num_tokens:].sum()),
        )
        (partial / "documents.bin").write_bytes(ends.tobytes())
        np.save(partial / "ngram_tokens.npy", spelling.tokens)
        np.save(partial / "ngram_offsets.npy", spelling.offsets)
        np.save(partial / "unit_counts.npy", unit_counts)
        (partial / vocabulary.file_name).write_bytes(vocabulary.content)
        if lexicon:
            lexicon.save(partial / LEXICON)
        (partial / CORPUS_INFO).write_text(json.dumps(asdict(info), indent=1) + "\n")
