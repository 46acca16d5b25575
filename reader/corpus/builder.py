"""Building a corpus from text, segment by segment on all cores; joining corpora. A stopped build can be resumed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

from reader.corpus.memmap import ARRAYS, FORMAT, LEXICON, Corpus, CorpusInfo, check_files, digests_in, unit_dtype
from reader.corpus.units import UnitCutter
from reader.errors import InputError
from reader.system.arrays import Int64s
from reader.system.atomic_files import atomic_folder, mapped_array, save_arrays
from reader.system.progress import progress
from reader.text.input_files import CORPUS_INFO
from reader.text.map_segments import Resources, map_segments
from reader.text.text_files import Segment, TextFiles, text_of
from reader.tokenization.vocabulary_file import save_vocabulary

BLOCK = 1 << 22  # units that are counted at a time


def build_corpus(
    text: TextFiles, cutter: UnitCutter, output: Path, folder: Path, resources: Resources, shard: str = ""
) -> None:
    """Cut text into units and store them in the folder `output`, which appears only when it is complete.

    Finished segments are stored in the work folder `folder` (see output_files.py); `shard` is I/N, or "" for a
    whole text. Raises InputError for invalid text, and for text without words.
    """
    num_units = cutter.num_tokens + len(cutter.ngram_offsets) - 1
    cut_segment = partial(_cut_segment, cutter, unit_dtype(num_units))
    segments = map_segments(cut_segment, text, folder / "cut", resources, "building", cutter.cut)
    if not any(len(mapped_array(segment, "units")) for segment in segments):
        raise InputError(f"{', '.join(map(str, text.paths))}: contains no words")
    # Map one segment at a time, because every mapped array keeps a file open.
    parts = ((mapped_array(segment, "units"), np.array(mapped_array(segment, "documents"))) for segment in segments)
    _write_corpus(output, cutter, text.digest, parts, shard)


def _cut_segment(cutter: UnitCutter, dtype: type[np.uint16] | type[np.uint32], segment: Segment, folder: Path) -> None:
    """Cut a segment of text into units and save two arrays in a folder.

    `units`: identities, [n]; `documents`: int64, the index in `units` at which each document ends.
    """
    cut = cutter.cut(text_of(segment))
    save_arrays(folder, units=cut.units.astype(dtype), documents=cut.documents)


def join_corpora(paths: list[Path], output: Path) -> None:
    """Concatenate corpora that were made with the same vocabulary and lexicon, such as shards.

    The units are the same as those of one corpus built from all the texts. Raises InputError if a corpus was made with
    another vocabulary or lexicon than the first one, if two corpora that are not shards have the same text, if shards
    are missing, out of order or mixed with other corpora, or if a file of a corpus is damaged.
    """
    first = Corpus(paths[0])
    infos = [Corpus(path).info for path in paths]
    _check_parts(paths, infos)
    for path, info in zip(paths, infos, strict=True):
        for what in ("vocabulary", "lexicon"):
            if getattr(info, what) != getattr(first.info, what):
                raise InputError(f"{path}: made with another {what} than {first.path}")
    size = sum((path / name).stat().st_size for path, info in zip(paths, infos, strict=True) for name in info.digests)
    with progress("checking the shards", size, "B") as bar:
        for path, info in zip(paths, infos, strict=True):
            # The joined corpus gets digests of its own, which would hide a damaged shard.
            check_files(path, info.digests, bar.update)
    text = hashlib.sha256("\n".join(info.text for info in infos).encode()).hexdigest()
    # Map one corpus at a time, because every mapped array keeps a file open.
    parts = ((np.asarray(corpus.units), np.asarray(corpus.documents[1:])) for corpus in map(Corpus, paths))
    _write_corpus(output, first, text, parts)


def _check_parts(paths: list[Path], infos: list[CorpusInfo]) -> None:
    """Raise InputError unless corpora are all shards of one, in order, or have different texts."""
    shards = [info.shard for info in infos]
    if any(shards):
        # Shards of different files may have the same text.
        if shards != [f"{i}/{len(shards)}" for i in range(1, len(shards) + 1)]:
            shown = ", ".join(shard or "no shard" for shard in shards)
            raise InputError(f"the shards are {shown}; give all of them, in order, and nothing else")
        return
    texts: dict[str, Path] = {}
    for path, info in zip(paths, infos, strict=True):
        if info.text in texts:
            raise InputError(f"{path}: made of the same text as {texts[info.text]}; give each corpus once")
        texts[info.text] = path


def _write_corpus(
    output: Path,
    made_with: UnitCutter | Corpus,
    text: str,
    parts: Iterable[tuple[np.ndarray, Int64s]],
    shard: str = "",
) -> None:
    """Write a corpus of several parts. A part holds units, and the indices in these units at which documents end.

    `made_with` has the vocabulary and the n-grams, `text` is the digest of the text.
    """
    vocabulary, lexicon, ngram_offsets = made_with.vocabulary, made_with.lexicon, made_with.ngram_offsets
    num_tokens, num_ngrams = len(vocabulary), len(ngram_offsets) - 1
    unit_counts = np.zeros(num_tokens + num_ngrams, np.int64)
    written = num_documents = last_end = 0
    with atomic_folder(output) as folder:
        with (folder / "units.bin").open("wb") as file, (folder / "documents.bin").open("wb") as documents:
            documents.write(np.zeros(1, np.int64).data)
            for units, ends in parts:
                file.write(np.ascontiguousarray(units).data)
                # In blocks, because the identities are copied as int64, and a part may be a whole shard.
                for first in range(0, len(units), BLOCK):
                    unit_counts += np.bincount(units[first : first + BLOCK], minlength=len(unit_counts))
                # Consecutive blank lines end a single document: the empty documents between them are dropped.
                new_ends = written + ends
                new_ends = new_ends[np.diff(new_ends, prepend=last_end) > 0]
                documents.write(new_ends.data)
                num_documents += len(new_ends)
                last_end = int(new_ends[-1]) if len(new_ends) else last_end
                written += len(units)
        unit_tokens = np.concatenate([np.ones(num_tokens, np.int64), np.diff(ngram_offsets)])
        for name, values in zip(ARRAYS, (made_with.ngram_tokens, ngram_offsets, unit_counts), strict=True):
            np.save(folder / name, values)
        save_vocabulary(vocabulary, folder / vocabulary.file_name)
        if lexicon:
            lexicon.save(folder / LEXICON)
        info = CorpusInfo(
            format=FORMAT,
            vocabulary=vocabulary.fingerprint,
            lexicon=lexicon.fingerprint if lexicon else "",
            text=text,
            lowercase=vocabulary.lowercase,
            num_tokens=num_tokens,
            num_ngrams=num_ngrams,
            documents=num_documents,
            units=written,
            tokens=int(unit_counts @ unit_tokens),
            ngram_units=int(unit_counts[num_tokens:].sum()),
            digests=digests_in(folder),
            shard=shard,
        )
        content = {key: value for key, value in asdict(info).items() if key != "shard" or shard}
        (folder / CORPUS_INFO).write_text(json.dumps(content, indent=1) + "\n")
