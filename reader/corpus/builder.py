"""Building a corpus from text, segment by segment on all cores. A stopped build can be resumed."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

from reader.corpus.memmap import (
    DOCUMENTS,
    FORMAT,
    LEXICON,
    NGRAM_OFFSETS,
    NGRAM_TOKENS,
    UNIT_COUNTS,
    UNITS,
    CorpusInfo,
    digests_in,
    unit_dtype,
)
from reader.corpus.units import UnitCutter
from reader.errors import InputError
from reader.system.arrays import Int64s
from reader.system.atomic_files import atomic_folder, mapped_array, save_arrays
from reader.text.input_files import CORPUS_INFO
from reader.text.map_segments import Resources, map_segments
from reader.text.text_files import Segment, TextFiles, text_of
from reader.tokenization.vocabulary_file import save_vocabulary


def build_corpus(text: TextFiles, cutter: UnitCutter, output: Path, folder: Path, resources: Resources) -> None:
    """Cut text into units and store them in the folder `output`, which appears only when it is complete.

    Finished segments are stored in the work folder `folder` (see output_files.py). Raises InputError for invalid text,
    and for text without words.
    """
    vocabulary, lexicon, ngram_offsets = cutter.vocabulary, cutter.lexicon, cutter.ngram_offsets
    num_tokens, num_ngrams = cutter.num_tokens, len(ngram_offsets) - 1
    cut_segment = partial(_cut_segment, cutter, unit_dtype(num_tokens + num_ngrams))
    segments = map_segments(cut_segment, text, folder / "cut", resources, "building", cutter.cut)
    if not any(len(mapped_array(segment, "units")) for segment in segments):
        raise InputError(f"{', '.join(map(str, text.paths))}: contains no words")
    with atomic_folder(output) as made:
        num_documents, unit_counts = _write_stream(made, segments, num_tokens + num_ngrams)
        unit_tokens = np.concatenate([np.ones(num_tokens, np.int64), np.diff(ngram_offsets)])
        np.save(made / NGRAM_TOKENS, cutter.ngram_tokens)
        np.save(made / NGRAM_OFFSETS, ngram_offsets)
        np.save(made / UNIT_COUNTS, unit_counts)
        save_vocabulary(vocabulary, made / vocabulary.file_name)
        if lexicon:
            lexicon.save(made / LEXICON)
        info = CorpusInfo(
            format=FORMAT,
            vocabulary=vocabulary.fingerprint,
            lexicon=lexicon.fingerprint if lexicon else "",
            text=text.digest,
            lowercase=vocabulary.lowercase,
            num_tokens=num_tokens,
            num_ngrams=num_ngrams,
            documents=num_documents,
            units=int(unit_counts.sum()),
            tokens=int(unit_counts @ unit_tokens),
            ngram_units=int(unit_counts[num_tokens:].sum()),
            digests=digests_in(made),
        )
        (made / CORPUS_INFO).write_text(json.dumps(asdict(info), indent=1) + "\n")


def _cut_segment(cutter: UnitCutter, dtype: type[np.uint16] | type[np.uint32], segment: Segment, folder: Path) -> None:
    """Cut a segment of text into units and save two arrays in a folder.

    `units`: identities, [n]; `documents`: int64, the index in `units` at which each document ends.
    """
    cut = cutter.cut(text_of(segment))
    save_arrays(folder, units=cut.units.astype(dtype), documents=cut.documents)


def _write_stream(output: Path, segments: list[Path], num_units: int) -> tuple[int, Int64s]:
    """Write units.bin and documents.bin; return the number of documents and that of each identity, int64 [C]."""
    unit_counts = np.zeros(num_units, np.int64)
    written = num_documents = last_end = 0
    with (output / UNITS).open("wb") as file, (output / DOCUMENTS).open("wb") as documents:
        documents.write(np.zeros(1, np.int64).data)
        # Map one segment at a time, because every mapped array keeps a file open.
        for segment in segments:
            units = np.ascontiguousarray(mapped_array(segment, "units"))
            file.write(units.data)
            unit_counts += np.bincount(units, minlength=num_units)
            # Consecutive blank lines end a single document: the empty documents between them are dropped.
            ends = written + mapped_array(segment, "documents")
            ends = ends[np.diff(ends, prepend=last_end) > 0]
            documents.write(ends.data)
            num_documents += len(ends)
            last_end = int(ends[-1]) if len(ends) else last_end
            written += len(units)
    return num_documents, unit_counts
