"""The corpus that training reads: a memory-mapped stream of unit identities (paper, section 4.1: text corpora).

A corpus is a folder that is either complete or absent:
    corpus.json        counts, sizes, fingerprints, digests of the other files as `b2sum --length 256` prints them
    units.bin          identity of every unit, document after document (uint16 where C <= 65536, else uint32)
    documents.bin      int64 [documents + 1], index of the first unit of each document
    ngram_tokens.npy   int32, token IDs of all n-grams, concatenated
    ngram_offsets.npy  int64 [N + 1], index of the first token of each n-gram
    unit_counts.npy    int64 [C], number of occurrences of each identity
    vocab.txt or spm.model, lexicon.tsv, lexicon.tsv.json    copies of the files it was made with

Identities 0..F-1 are tokens, F..F+N-1 n-grams. The tokens of a unit follow from its identity, so only the stream of
identities is stored, and one corpus serves every sequence length, and explicit and contiguous masking alike.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from numpy.lib.format import open_memmap

from reader.corpus.units import UnitNames
from reader.errors import InputError, counted
from reader.lexicon.lexicon_file import Lexicon
from reader.system.arrays import Int32s, Int64s
from reader.system.progress import progress
from reader.system.untrusted_text import read_json, record_of
from reader.text.input_files import CORPUS_INFO
from reader.tokenization.vocabulary import Vocabulary, unknown_share
from reader.tokenization.vocabulary_file import FILE_NAMES, kept_vocabulary

FORMAT = 2
UNITS, DOCUMENTS, LEXICON = "units.bin", "documents.bin", "lexicon.tsv"
NGRAM_TOKENS, NGRAM_OFFSETS, UNIT_COUNTS = "ngram_tokens.npy", "ngram_offsets.npy", "unit_counts.npy"
# The vocabulary and the lexicon, each with its description.
KEPT = tuple(part for name in (*FILE_NAMES, LEXICON) for part in (name, f"{name}.json"))
SPECIALS_PER_SEQUENCE = 2  # [CLS] and [SEP]
CHUNK_BYTES = 1 << 20

# A model can only learn what it sees often enough. With 130 occurrences and 15 % masked units, the identity of an
# n-gram is predicted about 20 times in an epoch. In our study of lexicon sizes, models that had predicted the median
# n-gram about 30 times were better than counts of left neighbours, and those that had predicted it about 9 times were
# worse. The paper has about 1,500 occurrences.
MIN_MEDIAN_OCCURRENCES = 130


def unit_dtype(num_units: int) -> type[np.uint16] | type[np.uint32]:
    """Return the dtype in which identities 0..num_units - 1 are stored."""
    return np.uint16 if num_units <= 1 << 16 else np.uint32


@dataclass(frozen=True)
class CorpusInfo:
    """The size of a corpus, and the fingerprints of what it was made from.

    Attributes:
        format: version of the file format.
        vocabulary, lexicon, text: fingerprints; `lexicon` is "" for a corpus without n-grams.
        lowercase: as in the vocabulary.
        num_tokens: F; num_ngrams: N.
        documents, units, tokens, ngram_units: numbers of each in the stream; `ngram_units` are units that are n-grams.
        digests: file name -> digest (see `file_digest`).
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
    digests: dict[str, str]

    @classmethod
    def load(cls, path: Path) -> CorpusInfo:
        """Read corpus.json in folder `path`. Raises InputError if it is missing, damaged or of another format."""
        if path.is_file():
            raise InputError(f"{path}: a file, not the folder of a corpus")
        if not (path / CORPUS_INFO).is_file():
            raise InputError(f"{path}: no corpus there; make one with `ernie-gram corpus`")
        info = cls.read(path / CORPUS_INFO)
        if info.format != FORMAT:
            raise InputError(f"{path}: corpus format {info.format}, expected {FORMAT}; build it again")
        if missing := [name for name in info.digests if not (path / name).is_file()]:
            raise InputError(f"{path / missing[0]}: missing; build the corpus again")
        return info

    @classmethod
    def read(cls, path: Path) -> CorpusInfo:
        """Read the description of a corpus in a file; raises InputError if it is damaged."""
        return record_of(cls, read_json(path), str(path))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the format and of the fingerprints of vocabulary, lexicon and text."""
        content = [self.format, self.vocabulary, self.lexicon, self.text]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


class Corpus:
    """A complete corpus, memory-mapped.

    Attributes:
        info: size and fingerprints.
        units: uint16 or uint32 [units], identities.
        documents: int64 [documents + 1], index of the first unit of each document, then the number of units.
        ngram_tokens: int32; ngram_offsets: int64 [N + 1]. The tokens of n-gram i are
            ngram_tokens[ngram_offsets[i]:ngram_offsets[i + 1]].
        unit_counts: int64 [C], number of occurrences of each identity.
    """

    def __init__(self, path: str | Path) -> None:
        """Open the corpus in folder `path`. Raises InputError if it is missing or damaged."""
        self.path = path = Path(path)
        self.info = CorpusInfo.load(path)
        self.units = self._map(UNITS, np.dtype(unit_dtype(self.num_units)), self.info.units)
        self.documents = self._map(DOCUMENTS, np.dtype(np.int64), self.info.documents + 1)
        self.ngram_tokens = self._load(NGRAM_TOKENS, np.int32)
        self.ngram_offsets = self._load(NGRAM_OFFSETS, np.int64, self.info.num_ngrams + 1)
        self.unit_counts = self._load(UNIT_COUNTS, np.int64, self.num_units)
        self._check_numbers()

    def __len__(self) -> int:
        return self.info.documents

    def __repr__(self) -> str:
        return f"<Corpus {self.path}: {counted(len(self), 'document')}, {counted(self.info.units, 'unit')}>"

    def __iter__(self) -> Iterator[np.ndarray]:
        """Yield the units of each document, uint16 or uint32; `names` has their texts."""
        for first, end in pairwise(self.documents.tolist()):
            yield self.units[first:end]

    def check_size(self) -> None:
        """Raise InputError if a mapped file has become shorter: reading beyond its end would kill this process."""
        for mapped, name in ((self.units, UNITS), (self.documents, DOCUMENTS)):
            file = self.path / name
            # A file that was removed remains mapped.
            if file.is_file() and (size := file.stat().st_size) < mapped.nbytes:
                raise InputError(
                    f"{file}: expected {mapped.nbytes} bytes, found {size}; it has become shorter while it was in use"
                )

    def _map(self, name: str, dtype: np.dtype, count: int) -> np.ndarray:
        """Memory-map a file of `count` numbers. Raises InputError if it is missing or has another size."""
        file = self.path / name
        size = file.stat().st_size if file.is_file() else 0
        if count <= 0 or size != count * dtype.itemsize:
            self._refuse(f"expects {count * dtype.itemsize} bytes of {name}, which has {size}", name)
        return np.memmap(file, dtype, "r", shape=(count,))

    def _load(self, name: str, dtype: npt.DTypeLike, count: int | None = None) -> np.ndarray:
        """Load a .npy file of `count` numbers, or of any number. Raises InputError if it is missing or damaged."""
        try:
            # Mapped first, because the header may claim more numbers than the file or any memory has.
            values = np.array(open_memmap(self.path / name, mode="r"))
        except Exception:  # NumPy also raises SyntaxError, TypeError and TokenError for a damaged header
            values = np.array(None)
        if values.dtype != dtype or values.ndim != 1 or count not in (None, len(values)):
            self._refuse(f"does not fit {name}", name)
        return values

    def _check_numbers(self) -> None:
        """Raise InputError for numbers that lead out of an array: compiled code would read there, and crash."""
        info, tokens = self.info, len(self.ngram_tokens)
        for fits, *names in (
            (_are_ascending(self.documents, info.units), DOCUMENTS),
            (_are_ascending(self.ngram_offsets, tokens), NGRAM_OFFSETS, NGRAM_TOKENS),
            # Negative numbers are large ones as uint32.
            (self.ngram_tokens.view(np.uint32).max(initial=0) < info.num_tokens, NGRAM_TOKENS),
            (self.units.max() < self.num_units, UNITS),
            (self.unit_counts.min() >= 0 and self.unit_counts.sum() == info.units, UNIT_COUNTS),
            (self.unit_counts @ self.unit_tokens == info.tokens, UNIT_COUNTS, NGRAM_OFFSETS),
            (self.unit_counts[info.num_tokens :].sum() == info.ngram_units, UNIT_COUNTS),
        ):
            if not fits:
                self._refuse(f"does not fit the numbers in {' and '.join(names)}", *names)

    def _refuse(self, reason: str, *names: str) -> NoReturn:
        """Raise InputError that names a file that has changed, or corpus.json and the reason if none has."""
        check_files(self.path, {name: self.info.digests.get(name, "") for name in names})
        raise InputError(f"{self.path / CORPUS_INFO}: {reason}; build the corpus again")

    @property
    def num_units(self) -> int:
        """C = F + N, the number of identities."""
        return self.info.num_tokens + self.info.num_ngrams

    @cached_property
    def unit_tokens(self) -> Int32s:
        """The number of tokens of each identity, int32 [C]."""
        ones = np.ones(self.info.num_tokens, np.int32)
        return np.concatenate([ones, np.diff(self.ngram_offsets).astype(np.int32)])

    @cached_property
    def token_counts(self) -> Int64s:
        """The number of occurrences of each token, including those inside n-grams; int64 [F]."""
        counts = self.unit_counts[: self.info.num_tokens].copy()
        ngram_counts = self.unit_counts[self.info.num_tokens :]
        np.add.at(counts, self.ngram_tokens, np.repeat(ngram_counts, np.diff(self.ngram_offsets)))
        return counts

    @property
    def unknown_share(self) -> float:
        """The share of [UNK] in the tokens."""
        return unknown_share(self.token_counts, self.vocabulary)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the corpus. Raises InputError if its file is missing or is another vocabulary."""
        return kept_vocabulary(self.path, self.info.vocabulary, "the corpus was made with; build it again")

    @cached_property
    def lexicon(self) -> Lexicon | None:
        """The lexicon of the corpus, None without n-grams. Raises InputError if its file is another lexicon."""
        if not self.info.lexicon:
            return None
        lexicon = Lexicon.load(self.path / LEXICON)
        if lexicon.fingerprint != self.info.lexicon:
            raise InputError(f"{self.path / LEXICON}: not the lexicon the corpus was made with; build it again")
        return lexicon

    @property
    def names(self) -> UnitNames:
        """The text of every identity."""
        return UnitNames(self.vocabulary, self.lexicon)


def _are_ascending(values: Int64s, last: int) -> bool:
    """Return whether numbers begin with 0, become larger from each to the next one, and end with `last`."""
    return bool(values[0] == 0 and values[-1] == last and (values[:-1] < values[1:]).all())


def large_lexicon_warning(corpus: Corpus) -> str | None:
    """Return a warning if the n-grams of the lexicon occur too rarely in a corpus, or not at all; otherwise None."""
    counts = corpus.unit_counts[corpus.info.num_tokens :]
    if not len(counts) or (median := np.median(counts)) >= MIN_MEDIAN_OCCURRENCES:
        return None
    if not corpus.info.ngram_units:
        return (
            "no n-gram of the lexicon occurs in this text; is it in another language, or are its words separated in "
            "another way (--segmenter of the lexicon)?"
        )
    return (
        f"the lexicon is too large for this text: half of its {corpus.info.num_ngrams:,} n-grams occur at most "
        f"{median:,.0f} times, which should be {MIN_MEDIAN_OCCURRENCES} times or more, so that a model predicts them "
        "often enough to learn them; make one with fewer n-grams (--top, --min_count), or use more text"
    )


def file_digest(path: Path, report: Callable[[int], Any] = lambda size: None) -> str:
    """Return the 32-byte BLAKE2b of a file in hexadecimal. `report` is called with the size of each part read."""
    digest, buffer = blake2b(digest_size=32), memoryview(bytearray(CHUNK_BYTES))
    with path.open("rb", buffering=0) as file:
        while size := file.readinto(buffer):
            digest.update(buffer[:size])
            report(size)
    return digest.hexdigest()


def digests_in(folder: Path) -> dict[str, str]:
    """Return the digests of all files in a folder, by file name, except that of corpus.json."""
    return {path.name: file_digest(path) for path in sorted(folder.iterdir()) if path.name != CORPUS_INFO}


def check_files(folder: Path, digests: Mapping[str, str], report: Callable[[int], Any] = lambda size: None) -> None:
    """Raise InputError that names the first file of a corpus that differs from its digest or cannot be read."""
    for name, expected in digests.items():
        try:
            is_equal = file_digest(folder / name, report) == expected
        except OSError:
            is_equal = False
        if not is_equal:
            changed = f"the content does not match the digest in {CORPUS_INFO}"
            raise InputError(f"{folder / name}: {changed}; build the corpus again")


def check_corpus(path: Path) -> str:
    """Check a corpus and its files, and show the progress; return a summary. Raises InputError if a file is damaged."""
    info = CorpusInfo.load(path)
    size = sum((path / name).stat().st_size for name in info.digests if (path / name).is_file())
    with progress(f"checking {path}", size, "B") as bar:
        check_files(path, info.digests, bar.update)
    Corpus(path)
    return f"{len(info.digests)} files ({size:,} bytes) match their digests"


def background_check(corpora: Iterable[Corpus]) -> Future[None]:
    """Check the files of corpora in a thread that does not keep the process alive, so that training need not wait.

    The result raises InputError if a file is damaged.
    """
    done: Future[None] = Future()

    def check() -> None:
        try:
            for corpus in corpora:
                check_files(corpus.path, corpus.info.digests)
            done.set_result(None)
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=check, name="corpus check", daemon=True).start()
    return done
