"""Throughput of the reader per CPU second, compared with other tools: `python -m tests.benchmarks.reader`.

    --input TEXT --vocab FILE   English text and vocabulary (default: the demo text, and a vocabulary trained on it)
    --chinese TEXT              Chinese text, for the segmenters (default: no Chinese rows)
    --megabytes N               maximum size of each text

Each row of the output is one tool. CPU seconds are summed over all threads. Slow tools are measured on less text. A
tool that is not installed gets a row without numbers: `pip install polars gensim transformers` installs most of them;
PaddleNLP needs a separate environment, with
`pip install -e '.[cpu]' paddlenlp==3.0.0b4 'huggingface_hub<1' 'aistudio-sdk<0.3' 'pyarrow<26' 'numpy<2'`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import jieba
import numpy as np

from reader.batches.feeder import Feeder, Masking
from reader.corpus.boundaries import cut_lines
from reader.corpus.builder import build_corpus
from reader.corpus.memmap import Corpus
from reader.corpus.units import UnitCutter
from reader.demo_text import documents, write_text
from reader.lexicon.extraction import CountingJob, CountingResult, Settings, make_lexicon
from reader.lexicon.lexicon_file import Lexicon
from reader.lexicon.local_engine import LocalEngine
from reader.tables.trie import build_trie
from reader.text.input_files import find_files
from reader.text.map_segments import Resources
from reader.text.text_files import TextFiles
from reader.tokenization.basic_tokenizer import split_words
from reader.tokenization.vocabulary import Vocabulary
from reader.tokenization.vocabulary_file import load_vocabulary
from reader.tokenization.word_index import WordIndex
from reader.tokenization.wordpiece import count_words, train_wordpiece
from tests.benchmarks import others
from tests.benchmarks.measure import cpu_seconds

TOP = {2: 200_000, 3: 100_000}
RESOURCES = Resources(2 << 30, 1)


def print_row(task: str, tool: str, amount: float, unit: str, work: Callable[[], object], runs: int = 3) -> None:
    """Time one tool on a task, and print its throughput as a row of the table; `amount` is the work done, in `unit`."""
    try:
        seconds = cpu_seconds(work, runs)
    except ImportError as error:
        print(f"| {task} | {tool} | {error} | |", flush=True)
        return
    print(f"| {task} | {tool} | {amount / seconds:,.1f} | {unit}/CPU s |", flush=True)


def print_prepared_row(
    task: str, tool: str, amount: float, unit: str, prepare: Callable[[], Callable[[], object]], runs: int
) -> None:
    """Print a row for the function that `prepare` returns; the time of `prepare` itself is not measured."""
    try:
        work = prepare()
    except ImportError as error:
        print(f"| {task} | {tool} | {error} | |", flush=True)
        return
    print_row(task, tool, amount, unit, work, runs)


def beginning(paths: list[Path], size: int) -> bytes:
    """Return about the first `size` bytes of a text, in whole lines."""
    return next(TextFiles(paths).segments(size)).text()


def first_part(text: bytes, fraction: float) -> tuple[bytes, float]:
    """Return the first `fraction` of a text, in whole lines, and its size in MB."""
    cut = text[: text.rfind(b"\n", 0, int(fraction * len(text))) + 1]
    return cut, len(cut) / 1e6


def count(text: bytes, segmenter: str, folder: Path) -> CountingResult:
    """Run the counting job on a text, in one process."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        path = Path(name) / "text.txt"
        path.write_bytes(text)
        engine = LocalEngine(TextFiles([path]), RESOURCES, Path(name))
        return CountingJob(engine, Settings(True, segmenter, TOP)).run()


def measure_splitting(text: bytes) -> None:
    few, size = first_part(text, 0.1)
    lines = few.decode().split("\n")
    print_row("split English", "ours", len(text) / 1e6, "MB", lambda: WordIndex(True).encode(text))
    print_row(
        "split English",
        "reference implementation, line by line",
        size,
        "MB",
        lambda: [split_words(line, True) for line in lines],
    )
    print_row("split English", "Hugging Face tokenizers", size, "MB", lambda: others.hf_words(lines))


def measure_chinese(text: bytes, folder: Path) -> None:
    few, size = first_part(text, 0.05)
    megabytes = len(text) / 1e6
    print_row(
        "split Chinese", "ours (jieba's words)", megabytes, "MB", lambda: WordIndex(True, "jieba").encode(text), 1
    )
    print_row("split Chinese", "jieba", size, "MB", lambda: jieba.lcut(few.decode()), 1)
    print_row("lexicon of Chinese", "ours (jieba's words), with t-test", megabytes, "MB",
        lambda: count(text, "jieba", folder), 1)  # fmt: skip
    lines = few.decode().split("\n")
    jieba_counter = lambda: others.counter_counts([jieba.lcut(line) for line in lines], 3)  # noqa: E731
    print_row("lexicon of Chinese", "jieba and Counter, counts only", size, "MB", jieba_counter, 1)


def measure_lexicon(text: bytes, folder: Path) -> CountingResult:
    index = WordIndex(True)
    stream, words = index.encode(text), [*index.words(), "\n", "\n"]
    separated = " ".join(words[i] for i in stream).replace(" \n ", "\n").encode()
    print_row("lexicon of raw English", "ours", len(text) / 1e6, "MB", lambda: count(text, "char", folder), 1)
    print_row(
        "lexicon of split words", "ours", len(separated) / 1e6, "MB", lambda: count(separated, "space", folder), 1
    )
    less, size = first_part(separated, 0.5)
    print_row("lexicon of split words", "Polars", size, "MB", lambda: others.polars_lexicon(less.decode(), TOP), 1)
    less, size = first_part(separated, 0.1)
    lines = [line.split() for line in less.decode().split("\n")]
    print_row("lexicon of split words", "Counter, counts only", size, "MB", lambda: others.counter_counts(lines, 3), 1)
    print_row(
        "lexicon of split words", "gensim Phrases, bigrams only", size, "MB", lambda: others.gensim_phrases(lines), 1
    )
    return count(text, "char", folder)


def measure_corpus(text: bytes, vocabulary: Vocabulary, lexicon: Lexicon, folder: Path) -> None:
    megabytes = len(text) / 1e6
    path = folder / "text.txt"
    path.write_bytes(text)

    def build() -> None:
        with tempfile.TemporaryDirectory(dir=folder) as work:
            build_corpus(TextFiles([path]), UnitCutter(vocabulary, lexicon), folder / "corpus", Path(work), RESOURCES)

    print_row("corpus of raw English", "ours: words, sub-word tokens, boundaries, file", megabytes, "MB", build, 1)
    few, size = first_part(text, 0.1)
    lines = few.decode().split("\n")
    print_row("corpus of raw English", "Hugging Face tokenizers, sub-word tokens only", size, "MB",
        lambda: others.hf_pieces(lines, vocabulary.ids))  # fmt: skip
    fewer = lines[: len(lines) // 10]
    print_prepared_row("corpus of raw English", "PaddleNLP's tokenizer for ERNIE-Gram, sub-word tokens only",
        sum(len(line.encode()) + 1 for line in fewer) / 1e6, "MB",
        lambda: others.paddlenlp_pieces(fewer, vocabulary.tokens), 1)  # fmt: skip
    ngrams = lexicon.ngrams
    trie = build_trie(ngrams.word_ids, ngrams.offsets, len(ngrams.words))
    index = WordIndex(True)
    index.add(ngrams.words)
    stream = index.encode(few)
    one_each = np.arange(len(index) + 1, dtype=np.int64)
    num_tokens = len(index)
    print_row("boundaries", "ours", len(stream) / 1e6, "million words",
        lambda: cut_lines(stream, trie, one_each, one_each[:-1].astype(np.int32), num_tokens))  # fmt: skip
    known, split_lines = (
        {tuple(text.split(" ")) for text in ngrams.texts()},
        [split_words(line, True) for line in lines],
    )
    print_row("boundaries", "the same in plain Python", len(stream) / 1e6, "million words",
        lambda: [others.dictionary_segments(words, known, 3) for words in split_lines], 1)  # fmt: skip


def measure_masking(folder: Path) -> None:
    corpus = Corpus(folder / "corpus")
    epochs = np.zeros(256, np.int64)
    for length in (128, 512):
        indices = np.arange(256)
        for explicit, queries in ((True, True), (True, False), (False, False)):
            feeder = Feeder(corpus, length, Masking(explicit, 0.15, 1, queries), pack_documents=True)
            indices = np.random.default_rng(0).integers(0, len(feeder), 256)
            kind = ("explicit" if explicit else "contiguous") + (" with query rows" if queries else "")
            print_row(f"mask and batch, length {length}", f"ours, {kind}", 256, "sequences",
                lambda feeder=feeder, indices=indices: feeder.batch(indices, epochs), 9)  # fmt: skip
        text = " ".join(corpus.names.text(int(unit)) for unit in corpus.units[: 64 * length]).replace(" ##", "")
        size = len(text) // 64  # in characters; more than `length` tokens, so that every text is truncated to `length`
        texts = [text[i : i + size] for i in range(0, 64 * size, size)]
        print_prepared_row(f"mask and batch, length {length}", "Hugging Face, whole words", 64, "sequences",
            lambda texts=texts, length=length: others.hf_whole_word_masking(texts, corpus.vocabulary.tokens, length),
            3)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", nargs="+")
    parser.add_argument("--vocab", type=Path)
    parser.add_argument("--chinese", nargs="+")
    parser.add_argument("--megabytes", type=int, default=60)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = find_files(arguments.input or [str(write_text(folder / "demo", documents())[0])])
        text = beginning(paths, arguments.megabytes * 1_000_000)
        lines = text.decode().split("\n")
        vocabulary: Vocabulary = (
            load_vocabulary(arguments.vocab)
            if arguments.vocab
            else train_wordpiece(count_words(lines, True), 8000, True)
        )
        del lines
        print(f"{len(text) / 1e6:.1f} MB of English\n\n| task | tool | throughput | unit |\n| --- | --- | ---: | --- |")
        measure_splitting(text)
        if arguments.chinese:
            measure_chinese(beginning(find_files(arguments.chinese), arguments.megabytes * 1_000_000), folder)
        result = measure_lexicon(text, folder)
        make_lexicon(result, vocabulary, Settings(True, "char", TOP), 8).save(folder / "lexicon.tsv")
        measure_corpus(text, vocabulary, Lexicon.load(folder / "lexicon.tsv"), folder)
        measure_masking(folder)


if __name__ == "__main__":
    main()
