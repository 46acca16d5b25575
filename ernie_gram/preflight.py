"""Predict what a pre-training run needs, and check its input, before it starts on a cluster:

    ernie-gram preflight CONFIG [--section.key VALUE ...] --nodes 8 --gpus 8 --memory 32GB \\
        --peak_tflops 125 --utilisation 0.4 --bandwidth 10GB

Nothing is written. Started with several processes (python -m ernie_gram.distributed.launch), it also compares the
corpora that the processes see, and measures the exchange between them.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("ernie_gram.preflight")

import argparse
import shutil
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from ernie_gram.config.loading import load_config
from ernie_gram.distributed.device import visible_gpus
from ernie_gram.distributed.loading import load_paddle
from ernie_gram.distributed.world import PROCESSES_ON_THIS_MACHINE, RANK, WORLD_SIZE, World, start_world
from ernie_gram.planning.sizes import assumed_shape, measured_shape
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.prepare import Run, prepare
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.run.run_folder import check_output
from reader.build_options import parse_bytes, parse_positive
from reader.corpus.corpus_check import check_corpus
from reader.errors import InputError, OneLineParser, print_warning
from reader.system.atomic_files import nearest_folder
from reader.system.progress import progress

if TYPE_CHECKING:
    from ernie_gram.planning.prediction import Speeds

# The share of a given peak that a step reaches, if it is not given.
ASSUMED_UTILISATION = 0.4
DESCRIPTION = (
    "CONFIG, or --config CONFIG: a YAML file of settings, such as conf/pretrain/small_en.yaml. "
    "Predict memory, time, exchanged bytes and disk space of a pre-training run, check its corpora, and name settings "
    "that work against each other. Other options are settings of the run, as for `ernie-gram pretrain`."
)


def parse_positive_float(text: str) -> float:
    """Return a positive number; raises ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def parse_share(text: str) -> float:
    """Return a number in (0, 1]; raises ArgumentTypeError."""
    value = parse_positive_float(text)
    if value > 1:
        raise argparse.ArgumentTypeError(f"{text} is not in (0, 1]")
    return value


def parse_sizes(text: str) -> tuple[CorpusSizes, float]:
    """Return the sizes in "TOKENS,NGRAMS,TOKENS_PER_UNIT"; raises ArgumentTypeError."""
    try:
        tokens, ngrams, ratio = text.split(",")
        sizes, per_unit = CorpusSizes(int(tokens), int(ngrams)), float(ratio)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text} is not TOKENS,NGRAMS,TOKENS_PER_UNIT") from error
    if sizes.tokens < 1 or sizes.ngrams < 0 or not 1 <= per_unit < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: expected TOKENS >= 1, NGRAMS >= 0 and TOKENS_PER_UNIT >= 1")
    return sizes, per_unit


def build_parser() -> OneLineParser:
    """Return the parser of the command's own options."""
    # CONFIG is not an argument of the parser, which would also match the values of settings.
    usage = "%(prog)s CONFIG [options] [--section.key VALUE ...]"
    parser = OneLineParser(usage=usage, description=DESCRIPTION, allow_abbrev=False)
    parser.add_argument(
        "--nodes",
        type=parse_positive,
        default=WORLD_SIZE // PROCESSES_ON_THIS_MACHINE,
        metavar="N",
        help="number of machines (those of this command)",
    )
    parser.add_argument(
        "--gpus",
        type=parse_positive,
        default=PROCESSES_ON_THIS_MACHINE,
        metavar="G",
        help="processes per machine, one per GPU (those of this command)",
    )
    parser.add_argument("--memory", type=parse_bytes, metavar="SIZE", help="memory per process, such as 32GB")
    parser.add_argument(
        "--peak_tflops",
        type=parse_positive_float,
        metavar="X",
        help="TFLOP per second of a GPU in matrix products, such as 15.7 for float32 on a V100; measured on this "
        "machine if not given",
    )
    parser.add_argument(
        "--utilisation",
        type=parse_share,
        metavar="SHARE",
        help="share of the peak that a step reaches; if not given, it is measured with a shorter model on this "
        f"machine, but taken as {ASSUMED_UTILISATION} with --peak_tflops",
    )
    parser.add_argument(
        "--bandwidth",
        type=parse_bytes,
        metavar="SIZE",
        help="bytes per second that one process sends to others, such as 10GB; measured if several processes are "
        "started",
    )
    parser.add_argument(
        "--assume",
        type=parse_sizes,
        metavar="TOKENS,NGRAMS,TOKENS_PER_UNIT",
        help="predict without a corpus: sizes of the vocabulary and the lexicon, and the mean number of tokens per "
        "unit; sequences are full",
    )
    return parser


def main() -> None:
    """Run the command line."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        build_parser().print_help()
        return
    own, settings = build_parser().parse_known_args()
    if settings and not settings[0].startswith("-"):
        settings = ["--config", *settings]
    config, given = load_config(PretrainConfig, settings, sys.argv[0], DESCRIPTION)
    if own.assume and config.paths.start is not None:
        raise InputError(
            "--assume: the model of paths.start is not read; give its sizes as --model.KEY, and --paths.start null"
        )
    ranks = own.nodes * own.gpus
    config.check_processes(ranks)
    with progress("checking the settings and the corpora"):
        # With "check", nothing is written.
        run = None if own.assume else prepare(config, ranks, RANK, {*given, "check"})
    if run:
        config = run.config
        check_output(run.output, is_first=False)
    world = None
    if own.peak_tflops is None or WORLD_SIZE > 1:
        world = start_world(config.trainer.device, config.optimizer.precision, config.model.attention)
    checked = check_corpora(run, world) if run else []
    if world is None:
        load_paddle()
    # Imported late: the terms of the objective need Paddle.
    from ernie_gram.planning.conflicts import conflicts
    from ernie_gram.planning.prediction import Cluster, predict, report

    sizes, shape = _sizes(own, config, run, ranks)
    with progress("measuring this machine"):
        speeds, measured = _speeds(own, config, sizes, shape, world)
    assert speeds.peak is not None
    utilisation = speeds.utilisation or ASSUMED_UTILISATION
    # A given peak is that of GPUs elsewhere, unless the device is a CPU.
    device = config.trainer.device
    cpu = device == "cpu" or (own.peak_tflops is None and not visible_gpus())
    cluster = Cluster(ranks, speeds.peak, utilisation, own.memory, speeds.bandwidth, cpu)
    held_out = len(run.held_out) if run and run.held_out else None
    prediction = predict(config, sizes, shape, cluster, held_out)
    if RANK > 0:
        return
    if run:
        print(run.describe())
    print("\n".join([*checked, *measured, "Predicted, not measured:", report(config, prediction, cluster)]))
    free = shutil.disk_usage(nearest_folder(Path(config.paths.output))).free
    for line in [*(run.warnings() if run else []), *conflicts(config, sizes, prediction, cluster, free)]:
        print_warning(line)


def _sizes(
    own: argparse.Namespace, config: PretrainConfig, run: Run | None, ranks: int
) -> tuple[CorpusSizes, BatchShape]:
    sequences = config.largest_micro_batch(ranks)
    if run is None:
        sizes, per_unit = own.assume
        rows = config.model.vocab_size
        if rows is not None and rows < sizes.tokens:
            raise InputError(
                f"--assume: {sizes.tokens} tokens, but model.vocab_size is {rows}; give --model.vocab_size null"
            )
        return sizes, assumed_shape(config, sequences, per_unit)
    return CorpusSizes.of(run.train.corpus), measured_shape(run.train, sequences)


def check_corpora(run: Run, world: World | None) -> list[str]:
    """Compare the files of the corpora with their digests, on every process, and the processes with each other.

    Raises InputError on every process if a file is damaged on any of them, or if they see different corpora.
    """
    lines, failure = [], None
    for corpus in run.corpora:
        try:
            lines.append(f"files    {corpus.path}: {check_corpus(corpus.path)}")
        except InputError as error:
            failure = error
    if world is None or world.size == 1:
        if failure:
            raise failure
        return lines
    # Imported late: it loads Paddle.
    import numpy as np
    import paddle

    from ernie_gram.distributed.collectives import check_agreement, sum_array

    executor = paddle.static.Executor(world.place)
    failures = sum_array(executor, np.array([float(failure is not None)]), world)[0]
    if failure:
        raise failure
    if failures:
        raise InputError(f"the corpora are damaged on {failures:.0f} of {world.size} processes; see their messages")
    seen = repr([(corpus.info.fingerprint, sorted(corpus.info.digests.items())) for corpus in run.corpora])
    check_agreement(executor, zlib.crc32(seen.encode()), "the corpora", world)
    return [*lines, f"files    equal on all {world.size} processes"]


def _speeds(
    own: argparse.Namespace, config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape, world: World | None
) -> tuple[Speeds, list[str]]:
    """Return the speeds that are given or measured, and lines about those that were measured."""
    # Imported late, as below: it loads Paddle.
    from ernie_gram.planning.prediction import Speeds

    given = Speeds(own.peak_tflops and own.peak_tflops * 1e12, own.utilisation, own.bandwidth)
    if world is None:
        return given, []
    from ernie_gram.planning.speeds import measure_missing

    return measure_missing(given, config, sizes, shape, own.gpus, world)
