"""Building a corpus from text, segment by segment on all cores; joining corpora. A stopped build can be resumed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reader.corpus.file_digests import check_files, digests_in
from reader.corpus.memmap import FORMAT, LEXICON, Corpus, CorpusInfo, unit_dtype
from reader.corpus.units import UnitCutter
from reader.errors import InputError
from reader.lexicon.lexicon_file import Lexicon
from reader.system.atomic_files import atomic_folder, load_array, mapped_array, save_arrays
from reader.system.progress import progress
from reader.text.input_files import CORPUS_INFO
from reader.text.map_segments import Resources, map_segments
from reader.text.text_files import Segment, TextFiles
from reader.tokenization.vocabulary import Vocabulary

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CutSegment:
    """Callable that cuts a segment of text into units and saves two arrays in a folder.

    `units`: identities, [n]; `documents`: int64, the index in `units` at which each document ends.
    """

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
    """Cut text into units and store them in the folder `output`, which appears only when it is complete.

    Finished segments are stored in the work folder `folder` (see resumable_folder.py). Raises InputError for invalid
    text, and for text without words.
    """
    cutter = UnitCutter(vocabulary, lexicon)
    num_units = cutter.num_tokens + len(cutter.ngram_offsets) - 1
    cut_segment = CutSegment(cutter, unit_dtype(num_units))
    segments, digest = map_segments(cut_segment, text, folder / "cut", resources, "building", cutter.cut)
    sources = CorpusSources(vocabulary, lexicon, digest)
    if not any(len(mapped_array(segment, "units")) for segment in segments):
        raise InputError(f"{', '.join(map(str, text.paths))}: no words in it")
    # Map one segment at a time, because every mapped array keeps a file open.
    parts = ((mapped_array(segment, "units"), load_array(segment, "documents")) for segment in segments)
    _write_corpus(output, sources, NgramTokens(cutter.ngram_offsets, cutter.ngram_tokens), parts)


def join_corpora(paths: list[Path], output: Path) -> None:
    """Concatenate corpora that were made with the same vocabulary and lexicon, such as shards.

    The units are the same as those of one corpus built from all the texts. Raises InputError if a corpus was made with
    another vocabulary or lexicon than the first one, or if a file of a corpus is damaged.
    """
    first = Corpus(paths[0])
    infos = [Corpus(path).info for path in paths]
    for path, info in zip(paths, infos, strict=True):
        for what in ("vocabulary", "lexicon"):
            if getattr(info, what) != getattr(first.info, what):
                raise InputError(f"{path}: made with another {what} than {first.path}")
        # The joined corpus gets digests of its own, which would hide a damaged shard.
        check_files(path, info)
    text = hashlib.sha256("\n".join(info.text for info in infos).encode()).hexdigest()
    sources = CorpusSources(first.vocabulary, first.lexicon, text)
    # Map one corpus at a time, because every mapped array keeps a file open.
    parts = ((np.asarray(corpus.units), np.asarray(corpus.documents[1:])) for corpus in map(Corpus, paths))
    _write_corpus(output, sources, NgramTokens(first.ngram_offsets, first.ngram_tokens), parts)


class CorpusSources(NamedTuple):
    """What a corpus is made from: a vocabulary, an optional lexicon, and the digest of a text."""

    vocabulary: Vocabulary
    lexicon: Lexicon | None
    text: str


class NgramTokens(NamedTuple):
    """Token IDs of all n-grams, int32: those of n-gram i are tokens[offsets[i]:offsets[i + 1]]; int64 [N + 1]."""

    offsets: Int64s
    tokens: Int32s


def _write_corpus(
    output: Path, sources: CorpusSources, ngrams: NgramTokens, parts: Iterable[tuple[np.ndarray, Int64s]]
) -> None:
    """Write a corpus of several parts. A part holds units, and the indices in these units at which documents end."""
    vocabulary, lexicon, text = sources
    num_tokens, num_ngrams = len(vocabulary), len(ngrams.offsets) - 1
    unit_counts = np.zeros(num_tokens + num_ngrams, np.int64)
    documents = [np.zeros(1, np.int64)]
    written = 0
    with atomic_folder(output) as partial, progress(f"writing {output}"):
        with (partial / "units.bin").open("wb") as file:
            for units, ends in parts:
                file.write(np.ascontiguousarray(units).data)
                unit_counts += np.bincount(units, minlength=len(unit_counts))
                documents.append(written + ends)
                written += len(units)
        # Consecutive blank lines end a single document: `unique` drops the empty documents between them.
        ends = np.unique(np.concatenate(documents))
        unit_tokens = np.concatenate([np.ones(num_tokens, np.int64), np.diff(ngrams.offsets)])
        (partial / "documents.bin").write_bytes(ends.tobytes())
        np.save(partial / "ngram_tokens.npy", ngrams.tokens)
        np.save(partial / "ngram_offsets.npy", ngrams.offsets)
        np.save(partial / "unit_counts.npy", unit_counts)
        (partial / vocabulary.file_name).write_bytes(vocabulary.content)
        if lexicon:
            lexicon.save(partial / LEXICON)
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
            digests=digests_in(partial),
        )
        (partial / CORPUS_INFO).write_text(json.dumps(asdict(info), indent=1) + "\n")
