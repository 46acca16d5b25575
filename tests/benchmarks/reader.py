"""Throughput of the reader per CPU second: `python -m tests.benchmarks.reader`.

    --input TEXT --vocab FILE   English text and vocabulary (default: the demo text, and a vocabulary trained on it)
    --chinese TEXT              Chinese text, for the segmenter (default: no Chinese rows)
    --megabytes N               maximum size of each text

Each row of the output is one kind of work. CPU seconds are summed over all threads. Of the text, the first 4 MB are
tokenized with spans, a line at a time or in a batch: "first time" is by a new tokenizer, "again" by one that remembers
the words of the text; the reference in plain Python gets a twentieth of the lines.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from reader.batches.feeder import Feeder, Masking
from reader.corpus.boundaries import build_trie, cut_lines
from reader.corpus.builder import build_corpus
from reader.corpus.memmap import Corpus
from reader.corpus.units import UnitCutter
from reader.demo_text import documents, write_text
from reader.lexicon.counting import LocalEngine
from reader.lexicon.extraction import Settings, count_best, make_lexicon
from reader.lexicon.lexicon_file import Lexicon, NGrams, index_words
from reader.text.input_files import find_files
from reader.text.map_segments import Resources
from reader.text.text_files import TextFiles, text_of
from reader.tokenization.sentencepiece import train_sentencepiece
from reader.tokenization.tokenizer import Tokenizer
from reader.tokenization.vocabulary import Vocabulary
from reader.tokenization.vocabulary_file import load_vocabulary
from reader.tokenization.word_index import WordIndex
from reader.tokenization.wordpiece import count_words, train_wordpiece
from tests.benchmarks.measure import step_seconds
from tests.support.reference_tokenizer import reference

TOP = {2: 200_000, 3: 100_000}
RESOURCES = Resources(2 << 30, 1)


def print_row(task: str, amount: float, unit: str, work: Callable[[], object], runs: int = 3) -> None:
    """Time a task, and print its throughput as a row of the table; `amount` is the work done, in `unit`."""
    print(f"| {task} | {amount / step_seconds(work, runs)['cpu']:,.1f} | {unit}/CPU s |", flush=True)


def beginning(paths: list[Path], size: int) -> bytes:
    """Return about the first `size` bytes of a text, in whole lines."""
    return text_of(next(TextFiles(paths).segments(size)))


def count(text: bytes, segmenter: str, folder: Path) -> tuple[NGrams, LocalEngine]:
    """Run the counting job on a text, in one process; return its result and its engine."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        path = Path(name) / "text.txt"
        path.write_bytes(text)
        engine = LocalEngine(TextFiles([path]), RESOURCES, Path(name))
        return count_best(engine, Settings(True, segmenter, TOP)), engine


def measure_lexicon(text: bytes, folder: Path) -> tuple[NGrams, LocalEngine]:
    index = WordIndex(True)
    stream, words = index.encode(text), [*index.words(), "\n", "\n"]
    separated = " ".join(words[i] for i in stream).replace(" \n ", "\n").encode()
    print_row("lexicon of raw English", len(text) / 1e6, "MB", lambda: count(text, "char", folder), 1)
    print_row("lexicon of split words", len(separated) / 1e6, "MB", lambda: count(separated, "space", folder), 1)
    return count(text, "char", folder)


def measure_corpus(text: bytes, vocabulary: Vocabulary, lexicon: Lexicon, folder: Path) -> None:
    path = folder / "text.txt"
    path.write_bytes(text)

    def build() -> None:
        with tempfile.TemporaryDirectory(dir=folder) as work:
            build_corpus(TextFiles([path]), UnitCutter(vocabulary, lexicon), folder / "corpus", Path(work), RESOURCES)

    print_row("corpus of raw English", len(text) / 1e6, "MB", build, 1)
    words, word_ids, offsets = index_words(lexicon.ngrams.texts)
    trie = build_trie(word_ids, offsets, len(words))
    index = WordIndex(True)
    index.add(words)
    stream = index.encode(text[: text.rfind(b"\n", 0, len(text) // 10) + 1])
    one_each, num_tokens = np.arange(len(index) + 1, dtype=np.int64), len(index)
    tokens = one_each[:-1].astype(np.int32)
    work = partial(cut_lines, stream, trie, one_each, tokens, num_tokens)
    print_row("boundaries", len(stream) / 1e6, "million words", work)


def measure_masking(folder: Path) -> None:
    corpus, epochs = Corpus(folder / "corpus"), np.zeros(256, np.int64)
    for length in (128, 512):
        for explicit, queries in ((True, True), (True, False), (False, False)):
            feeder = Feeder(corpus, length, Masking(explicit, 0.15, 1, queries), pack_documents=True)
            indices = np.random.default_rng(0).integers(0, len(feeder), 256)
            kind = ("explicit" if explicit else "contiguous") + (" with query rows" if queries else "")
            work = partial(feeder.batch, indices, epochs)
            print_row(f"mask and batch, length {length}, {kind}", 256, "sequences", work, 9)


def measure_tokenizer(texts: list[str], vocabulary: Vocabulary) -> None:
    # Read when `tokenizers` first works on a batch. Threads that wait for each other would count as CPU seconds.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers import BertWordPieceTokenizer

    known, words, some = Tokenizer(vocabulary), [text.split() for text in texts], texts[::20]
    theirs, pieces = BertWordPieceTokenizer(vocabulary.ids), train_sentencepiece(texts[::4], 8000, True, "jieba")
    for tool, chosen, work in (
        ("ours, a batch, first time", texts, lambda: Tokenizer(vocabulary).encode_batch(texts)),
        ("ours, a batch, again", texts, lambda: known.encode_batch(texts)),
        ("ours, one by one, again", texts, lambda: [known.encode(text) for text in texts]),
        ("ours, split words, again", texts, lambda: known.encode_words_batch(words)),
        ("BertWordPieceTokenizer", texts, lambda: theirs.encode_batch(texts)),
        ("reference in plain Python", some, lambda: [reference(text, vocabulary) for text in some]),
        ("ours, SentencePiece, jieba, first time", texts, lambda: Tokenizer(pieces, "jieba").encode_batch(texts)),
    ):
        print_row(f"spans: {tool}", sum(len(text.encode()) for text in chosen) / 1e6, "MB", work, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", nargs="+")
    parser.add_argument("--vocab", type=Path)
    parser.add_argument("--chinese", nargs="+")
    parser.add_argument("--megabytes", type=int, default=60)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given = arguments.input or [str(write_text(folder / "demo", documents())[0])]
        text = beginning(find_files(given), arguments.megabytes * 1_000_000)
        if arguments.vocab:
            vocabulary: Vocabulary = load_vocabulary(arguments.vocab)
        else:
            vocabulary = train_wordpiece(count_words(text.decode().split("\n"), True), 8000, True)
        print(f"{len(text) / 1e6:.1f} MB of English\n\n| task | throughput | unit |\n| --- | ---: | --- |")
        print_row("split English", len(text) / 1e6, "MB", lambda: WordIndex(True).encode(text))
        if arguments.chinese:
            chinese = beginning(find_files(arguments.chinese), arguments.megabytes * 1_000_000)
            print_row("split Chinese", len(chinese) / 1e6, "MB", lambda: WordIndex(True, "jieba").encode(chinese), 1)
            print_row("lexicon of Chinese", len(chinese) / 1e6, "MB", lambda: count(chinese, "jieba", folder), 1)
        counted = measure_lexicon(text, folder)
        make_lexicon(*counted, vocabulary, Settings(True, "char", TOP), 8).save(folder / "lexicon.tsv")
        measure_corpus(text, vocabulary, Lexicon.load(folder / "lexicon.tsv"), folder)
        measure_masking(folder)
        measure_tokenizer(
            [line for line in text[:4_000_000].decode(errors="ignore").split("\n") if line.strip()], vocabulary
        )


if __name__ == "__main__":
    main()
