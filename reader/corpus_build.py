"""Building a corpus: text -> units, segment by segment on all cores; stopped, it can go on."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from reader.atomic import load_array, save_arrays, whole_folder
from reader.boundaries import Units, build_trie, cut_lines
from reader.corpus import FORMAT, LEXICON, CorpusInfo, unit_dtype
from reader.errors import InputError
from reader.lexicon import Lexicon, segmenter_of
from reader.segment_work import Resources, over_segments
from reader.splitting import WordIndex
from reader.text import Segment, TextFiles
from reader.vocabulary import PieceTable, Vocabulary

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
        self._lexicon_words = (
            list(dict.fromkeys(word for ngram in lexicon.ngrams for word in ngram.words)) if lexicon else []
        )
        self._pieces = PieceTable(vocabulary)
        self._forget()
        numbers = {word: number for number, word in enumerate(self._lexicon_words)}
        ngrams = [tuple(numbers[word] for word in ngram.words) for ngram in lexicon.ngrams] if lexicon else []
        self._trie = build_trie(ngrams, len(numbers))
        self._pieces.extend(self._lexicon_words)
        offsets, pieces = self._pieces.offsets, self._pieces.pieces
        tokens = [np.concatenate([pieces[offsets[w] : offsets[w + 1]] for w in ngram]) for ngram in ngrams]
        self.ngram_offsets = np.cumsum([0, *map(len, tokens)], dtype=np.int64)
        self.ngram_tokens = np.concatenate([np.zeros(0, np.int32), *tokens]).astype(np.int32)

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
        self._pieces.keep(min(len(self._pieces), len(self._lexicon_words)))


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
) -> CorpusInfo:
    """Cut text into units and store them; the folder `output` appears when all is done.

    `folder` is for the segments that are finished (see work_folder.py). Raises InputError for bad text.
    """
    cutter = UnitCutter(vocabulary, lexicon)
    num_units = cutter.num_tokens + len(cutter.ngram_offsets) - 1
    dtype = unit_dtype(num_units)
    segments = over_segments(CutSegment(cutter, dtype), text, folder / "cut", resources, "building")
    unit_counts = np.zeros(num_units, np.int64)
    documents = [np.zeros(1, np.int64)]
    written = 0
    with whole_folder(output) as partial:
        with (partial / "units.bin").open("wb") as file:
            for segment in segments:
                units = load_array(segment, "units")
                file.write(units.data)
                unit_counts += np.bincount(units, minlength=num_units)
                documents.append(written + load_array(segment, "documents"))
                written += len(units)
        # Two blank lines in a row end one document, not two.
        ends = np.unique(np.concatenate(documents))
        if written == 0:
            raise InputError(f"{', '.join(map(str, text.paths))}: no words in it")
        unit_tokens = np.concatenate([np.ones(cutter.num_tokens, np.int64), np.diff(cutter.ngram_offsets)])
        info = CorpusInfo(
            format=FORMAT,
            vocabulary=vocabulary.fingerprint,
            lexicon=lexicon.fingerprint if lexicon else "",
            text=text.digest,
            lowercase=vocabulary.lowercase,
            num_tokens=cutter.num_tokens,
            num_ngrams=num_units - cutter.num_tokens,
            documents=len(ends) - 1,
            units=written,
            tokens=int(unit_counts @ unit_tokens),
            ngram_units=int(unit_counts[cutter.num_tokens :].sum()),
        )
        (partial / "documents.bin").write_bytes(ends.tobytes())
        np.save(partial / "ngram_tokens.npy", cutter.ngram_tokens)
        np.save(partial / "ngram_offsets.npy", cutter.ngram_offsets)
        np.save(partial / "unit_counts.npy", unit_counts)
        (partial / vocabulary.file_name).write_bytes(vocabulary.content)
        if lexicon:
            lexicon.save(partial / LEXICON)
        (partial / "corpus.json").write_text(json.dumps(asdict(info), indent=1) + "\n")
    return info
