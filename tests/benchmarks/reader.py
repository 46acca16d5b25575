"""How fast the reader is, per CPU second: `python -m tests.benchmarks.reader [--input TEXT] [--vocab FILE]`.

Without arguments it measures on the text of the demo and a vocabulary learnt from it.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from reader.build import lexicon_of
from reader.corpus import Corpus
from reader.corpus_build import UnitCutter, build_corpus
from reader.counting_job import Counted, CountingJob, Settings
from reader.counting_local import LocalEngine
from reader.demo_text import write_text
from reader.feeder import Feeder, Masking
from reader.lexicon import Lexicon
from reader.segment_work import Resources
from reader.splitting import WordIndex
from reader.text import TextFiles, find_files
from reader.tokenization import Vocabulary, split_words, train_vocabulary
from tests.benchmarks.measure import cpu_seconds, row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", nargs="+", help="text to measure on")
    parser.add_argument("--vocab", type=Path, help="its vocabulary")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = find_files(arguments.input or [str(write_text(folder / "text")[0])])
        text = b"".join(segment.text() for segment in TextFiles(paths).segments(1 << 24))
        lines = text.decode().split("\n")
        megabytes = len(text) / 1e6
        vocabulary = Vocabulary.load(arguments.vocab) if arguments.vocab else train_vocabulary(lines, 8000, True)
        print(f"{megabytes:.1f} MB of text\n\n| work | seen | unit |\n| --- | ---: | --- |")

        row("split into words", megabytes / cpu_seconds(lambda: WordIndex(True).encode(text)), "MB/CPU s")
        sample = lines[: len(lines) // 10]
        part = sum(len(line.encode()) + 1 for line in sample) / 1e6
        row(
            "  by the rule, line by line",
            part / cpu_seconds(lambda: [split_words(x, True) for x in sample]),
            "MB/CPU s",
        )
        settings, resources = Settings(True, "char", {2: 20000, 3: 10000}, {}), Resources(2 << 30, 1)

        def lexicon() -> Counted:
            with tempfile.TemporaryDirectory(dir=folder) as work:
                return CountingJob(LocalEngine(TextFiles(paths), resources, Path(work)), settings, print).run()

        row("lexicon, orders 1 to 3", megabytes / cpu_seconds(lexicon, 3), "MB/CPU s")

        def counter() -> None:
            counts: Counter[tuple[str, ...]] = Counter()
            for line in sample:
                words = split_words(line, True)
                for order in (1, 2, 3):
                    counts.update(zip(*(words[i:] for i in range(order)), strict=False))

        row("  counts alone, collections.Counter", part / cpu_seconds(counter, 3), "MB/CPU s")
        made = lexicon_of(lexicon(), vocabulary, settings, 8)
        made.save(folder / "lexicon.tsv")
        made = Lexicon.load(folder / "lexicon.tsv")
        cutter = UnitCutter(vocabulary, made)
        row("words, boundaries and pieces", megabytes / cpu_seconds(lambda: cutter.cut(text)), "MB/CPU s")
        (folder / "work").mkdir()
        build_corpus(TextFiles(paths), vocabulary, made, folder / "corpus", folder / "work", resources)
        for length in (128, 512):
            for explicit, queries in ((True, True), (True, False), (False, False)):
                feeder = Feeder(Corpus(folder / "corpus"), length, Masking(explicit, 0.15, 1, queries))
                indices = np.random.default_rng(0).integers(0, len(feeder), 256)
                epochs = np.zeros(256, np.int64)
                seconds = cpu_seconds(lambda feeder=feeder, i=indices, e=epochs: feeder.batch(i, e), 9)
                kind = ("explicit" if explicit else "contiguous") + (" with query rows" if queries else "")
                tokens = corpus_tokens(feeder, indices)
                row(f"mask and batch, {kind}, length {length}", 256 / seconds, "sequences/CPU s")
                row("  the same", tokens / seconds / 1e6, "million tokens/CPU s")


def corpus_tokens(feeder: Feeder, indices: np.ndarray) -> int:
    """Tokens in some sequences."""
    sizes = feeder.corpus.unit_tokens[feeder.corpus.units]
    return int(sum(sizes[feeder.starts[i] : feeder.starts[i + 1]].sum() for i in indices))


if __name__ == "__main__":
    main()
