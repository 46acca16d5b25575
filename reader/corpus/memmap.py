"""The corpus that training reads: a memory-mapped stream of unit identities.

A folder, complete or absent:
    corpus.json        counts, sizes, fingerprints
    units.bin          identity of every unit, document after document (uint16 where C <= 65536, else uint32)
    documents.bin      int64 [documents + 1], where each document's units start
    ngram_tokens.npy   int32, token ids of all n-grams, one after the other
    ngram_offsets.npy  int64 [N + 1], where each n-gram's tokens start
    unit_counts.npy    int64 [C], how often each identity occurs
    vocab.txt or spm.model, lexicon.tsv, lexicon.tsv.json    copies of what it was made with

Identities 0..F-1 are tokens, F..F+N-1 n-grams. The tokens of a unit follow from its identity, so the stream is
all there is to store, and one corpus serves every sequence length and every kind of masking.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numba
import numpy as np
import numpy.typing as npt

from reader.errors import InputError
from reader.lexicon.lexicon_file import Lexicon
from reader.text.input_files import CORPUS_INFO
from reader.tokenization.vocabulary import Vocabulary
from reader.tokenization.vocabulary_file import kept_vocabulary

FORMAT = 2
LEXICON = "lexicon.tsv"
SPECIALS_PER_SEQUENCE = 2  # [CLS] and [SEP]

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


def unit_dtype(num_units: int) -> type[np.uint16] | type[np.uint32]:
    """What identities 0..num_units - 1 are stored as."""
    return np.uint16 if num_units <= 1 << 16 else np.uint32


@dataclass(frozen=True)
class CorpusInfo:
    """What a corpus holds and what made it.

    Attributes:
        vocabulary, lexicon, text: fingerprints; lexicon is "" for a corpus without n-grams.
        lowercase: the vocabulary's.
        num_tokens: F; num_ngrams: N.
        documents, units, tokens, ngram_units: how many of each the stream holds.
    """

    format: int
    vocabulary: str
    lexicon: str
    text: str
    lowercase: bool
    num_tokens: int
    num_ngrams: int
    documents: int
    units: int
    tokens: int
    ngram_units: int

    @property
    def unit_dtype(self) -> type[np.uint16] | type[np.uint32]:
        return unit_dtype(self.num_tokens + self.num_ngrams)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything that made the corpus."""
        made_of = [self.format, self.vocabulary, self.lexicon, self.text]
        return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()


@dataclass(frozen=True)
class UnitNames:
    """What identities stand for: tokens 0..F-1 of a vocabulary, then the n-grams of a lexicon."""

    vocabulary: Vocabulary
    lexicon: Lexicon | None

    @property
    def num_ngrams(self) -> int:
        """N."""
        return len(self.lexicon) if self.lexicon else 0

    def text(self, identity: int) -> str:
        """A unit as a person would write it."""
        if identity < len(self.vocabulary):
            # Of a token that only says that a word begins, nothing is left in a text.
            return self.vocabulary.text([identity]) or self.vocabulary.tokens[identity]
        assert self.lexicon is not None
        return self.lexicon.ngrams.text(identity - len(self.vocabulary))


class Corpus:
    """A finished corpus, memory-mapped.

    Attributes:
        info: CorpusInfo.
        units: uint16 or uint32 [units], identities.
        documents: int64 [documents + 1].
        ngram_tokens: int32; ngram_offsets: int64 [N + 1].
        unit_counts: int64 [C].
    """

    def __init__(self, path: Path) -> None:
        """Open the corpus in folder `path`; raises InputError if it is absent or damaged."""
        self.path = path
        try:
            self.info = CorpusInfo(**json.loads((path / CORPUS_INFO).read_text()))
        except FileNotFoundError as error:
            raise InputError(f"{path}: no corpus there; make one with `python -m reader.build corpus`") from error
        except (ValueError, TypeError, OSError) as error:
            raise InputError(f"{path / CORPUS_INFO}: not a corpus description: {error}") from error
        if self.info.format != FORMAT:
            raise InputError(f"{path}: corpus format {self.info.format}, expected {FORMAT}; build it again")
        self.units = self._map("units.bin", np.dtype(self.info.unit_dtype), self.info.units)
        self.documents = self._map("documents.bin", np.dtype(np.int64), self.info.documents + 1)
        self.ngram_tokens = self._load("ngram_tokens.npy")
        self.ngram_offsets = self._load("ngram_offsets.npy")
        self.unit_counts = self._load("unit_counts.npy")
        fits = (
            len(self.ngram_offsets) == self.info.num_ngrams + 1
            and self.ngram_offsets[-1] == len(self.ngram_tokens)
            and len(self.unit_counts) == self.num_units
            and self.unit_counts.sum() == self.info.units
            and self.documents[-1] == self.info.units
        )
        if not fits:
            raise InputError(f"{path}: its files do not belong together; build it again")

    def _map(self, name: str, dtype: np.dtype, count: int) -> np.ndarray:
        file = self.path / name
        size = file.stat().st_size if file.is_file() else -1
        if size != count * dtype.itemsize:
            raise InputError(f"{file}: expected {count * dtype.itemsize} bytes, found {max(size, 0)}; build it again")
        return np.memmap(file, dtype, "r", shape=(count,))

    def _load(self, name: str) -> np.ndarray:
        try:
            return np.asarray(np.load(self.path / name, allow_pickle=False))
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"{self.path / name}: damaged or missing; build the corpus again") from error

    @property
    def num_units(self) -> int:
        """C = F + N, how many identities there are."""
        return self.info.num_tokens + self.info.num_ngrams

    @cached_property
    def unit_tokens(self) -> Int32s:
        """How many tokens each identity stands for, int32 [C]."""
        ones = np.ones(self.info.num_tokens, np.int32)
        return np.concatenate([ones, np.diff(self.ngram_offsets).astype(np.int32)])

    @cached_property
    def token_counts(self) -> Int64s:
        """How often each token occurs, those inside n-grams included; int64 [F]."""
        counts = self.unit_counts[: self.info.num_tokens].copy()
        repeats = np.repeat(self.unit_counts[self.info.num_tokens :], np.diff(self.ngram_offsets))
        np.add.at(counts, self.ngram_tokens, repeats)
        return counts

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return kept_vocabulary(self.path, self.info.vocabulary, "the corpus was made with; build it again")

    @cached_property
    def lexicon(self) -> Lexicon | None:
        if not self.info.lexicon:
            return None
        lexicon = Lexicon.load(self.path / LEXICON)
        if lexicon.fingerprint != self.info.lexicon:
            raise InputError(f"{self.path / LEXICON}: not the lexicon the corpus was made with; build it again")
        return lexicon

    @property
    def names(self) -> UnitNames:
        """What its identities stand for."""
        return UnitNames(self.vocabulary, self.lexicon)

    def sequences(self, max_seq_len: int, packed: bool = False) -> Int64s:
        """Cut the stream into sequences of at most `max_seq_len` tokens, [CLS] and [SEP] included.

        Each document is cut from its start, every sequence taking as many whole units as fit; none spans two
        documents, unless `packed`: then a sequence goes on into the next ones until it is full.
        Returns int64 [sequences + 1], where each sequence's units start.
        """
        longest = int(self.unit_tokens.max())
        if max_seq_len - SPECIALS_PER_SEQUENCE < longest:
            raise InputError(
                f"data.max_seq_len: {max_seq_len} is too short: a unit of {self.path} has {longest} tokens, "
                f"and [CLS] and [SEP] take {SPECIALS_PER_SEQUENCE}"
            )
        room = max_seq_len - SPECIALS_PER_SEQUENCE
        documents = self.documents[[0, -1]] if packed else self.documents
        starts = _cut_sequences(self.units, documents, self.unit_tokens, room)
        if len(starts) == 0:
            raise InputError(f"{self.path / 'units.bin'}: damaged: it holds an unknown unit; build the corpus again")
        return starts


@numba.njit(cache=True, nogil=True)
def _cut_sequences(units: np.ndarray, documents: Int64s, unit_tokens: Int32s, room: int) -> Int64s:
    """See Corpus.sequences; empty if a unit is out of range."""
    starts = [np.int64(0)]
    for document in range(len(documents) - 1):
        used = 0
        for at in range(documents[document], documents[document + 1]):
            if units[at] >= len(unit_tokens):
                return np.empty(0, np.int64)
            tokens = unit_tokens[units[at]]
            if used + tokens > room:
                starts.append(np.int64(at))
                used = 0
            used += tokens
        starts.append(documents[document + 1])
    return np.array(starts)
