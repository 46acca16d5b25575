"""Simulate 1 to 512 processes in this one: `python -m tests.benchmarks.simulation [--config FILE] [--corpus FOLDER]`.

For each number of processes the table says whether the rows of two whole batches, as the processes read them, are
those of one process, and what a process holds, sends and stores according to ernie_gram.preflight ("rows" are those of
the n-gram embedding that are exchanged; all n-grams are taken to be equally frequent). The model is that of
--config with a vocabulary of 30,522 tokens and 300,000 n-grams; the rows come from a small corpus of text that is part
of Python, or from --corpus.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from ernie_gram.planning.prediction import Cluster, predict
from ernie_gram.planning.sizes import assumed_shape
from ernie_gram.pretraining.sizes import CorpusSizes
from reader.batches.feeder import Feeder, Masking
from reader.corpus.memmap import Corpus
from tests.conftest import build_all
from tests.support.cluster_simulation import global_batch
from tests.support.configs import load

SIZES, TOKENS_PER_UNIT = CorpusSizes(30_522, 300_000), 1.9
# A V100 at 40 % of its float32 peak, with 10 GB/s between processes.
PEAK, UTILISATION, BANDWIDTH, MEMORY = 15.7e12, 0.4, 10e9, 32e9


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="conf/pretrain/base_en_160g.yaml")
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--max_seq_len", type=int, default=32)
    arguments = parser.parse_args()
    config = load("--config", arguments.config)
    with TemporaryDirectory() as folder:
        if arguments.corpus is None:
            build_all(Path(folder))
        corpus = Corpus(arguments.corpus or Path(folder) / "corpus")
        feeder = Feeder(corpus, arguments.max_seq_len, Masking(True, 0.15, config.seed, queries=True))
        size = config.data.batch_size
        expected = global_batch(feeder, 0, size, 1) + global_batch(feeder, size, size, 1)
        columns = ["processes", "rows and masks equal", "seconds to read", "sequences at a time", "micro-batches"]
        columns += ["memory GB", "sums", "rows", "sent GB", "step s", "days", "checkpoint GB"]
        print(f"| {' | '.join(columns)} |\n|{' ---: |' * len(columns)}")
        for ranks in (2**i for i in range(10)):
            start = time.monotonic()
            equal = global_batch(feeder, 0, size, ranks) + global_batch(feeder, size, size, ranks) == expected
            seconds = time.monotonic() - start
            shape = assumed_shape(config, config.largest_micro_batch(ranks), TOKENS_PER_UNIT)
            found = predict(config, SIZES, shape, Cluster(ranks, PEAK, UTILISATION, MEMORY, BANDWIDTH))
            cells = [str(ranks), "yes" if equal else "NO", f"{seconds:.1f}", str(shape.sequences), str(found.steps)]
            cells += [f"{found.memory.total / 1e9:,.1f}", str(found.exchange.sums), f"{found.exchange.rows:,.0f}"]
            cells += [f"{found.exchange.sent(ranks) / 1e9:.2f}", f"{found.step:,.2f}"]
            print(f"| {' | '.join([*cells, f'{found.days:,.1f}', f'{found.checkpoint / 1e9:.2f}'])} |", flush=True)


if __name__ == "__main__":
    main()
