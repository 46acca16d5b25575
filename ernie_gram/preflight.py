"""Predict the memory, time and disk space of a pre-training run:

    ernie-gram preflight CONFIG [--section.key VALUE ...] --nodes 8 --gpus 8 --peak_tflops 125 --utilisation 0.4

CONFIG is a YAML file of settings, such as conf/pretrain/small_en.yaml. Other options are settings of the run, as for
`ernie-gram pretrain`. Nothing is written.
"""

from __future__ import annotations

import argparse
from functools import partial

from ernie_gram.config.loading import load_config
from ernie_gram.distributed.loading import load_paddle
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.prepare import prepare
from ernie_gram.pretraining.sizes import CorpusSizes, assumed_shape, measured_shape
from reader.build_options import parse_positive
from reader.errors import InputError, OneLineParser, print_warning


def parse_number(text: str, most: float = 1e6) -> float:
    """Return a number above 0 and at most `most`; raises ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= most:
        raise argparse.ArgumentTypeError(f"{text} is not in (0, {most:g}]")
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
    form = argparse.RawDescriptionHelpFormatter
    parser = OneLineParser(usage=usage, description=__doc__, formatter_class=form, allow_abbrev=False)
    add = parser.add_argument
    add("--nodes", type=parse_positive, default=1, metavar="N", help="number of machines (1)")
    add("--gpus", type=parse_positive, default=1, metavar="G", help="processes per machine, one per GPU (1)")
    peak_help = "TFLOP per second of a process in matrix products, such as 15.7 for float32 on a V100"
    add("--peak_tflops", type=parse_number, required=True, metavar="X", help=peak_help)
    share_help = "share of the peak that a step reaches (0.4)"
    add("--utilisation", type=partial(parse_number, most=1), default=0.4, metavar="SHARE", help=share_help)
    sizes_help = "predict without a corpus: sizes of the vocabulary and the lexicon, and the mean number of tokens per "
    sizes_help += "unit; sequences are full"
    add("--assume", type=parse_sizes, metavar="TOKENS,NGRAMS,TOKENS_PER_UNIT", help=sizes_help)
    return parser


def main() -> None:
    """Run the command line."""
    own, settings = build_parser().parse_known_args()
    if settings and not settings[0].startswith("-"):
        settings = ["--config", *settings]
    config, given = load_config(PretrainConfig, settings)
    ranks = own.nodes * own.gpus
    config.check_processes(ranks)
    run = None
    if own.assume:
        _check_assumed(config, own.assume[0])
        lines = []
    else:
        run = prepare(config, ranks, False, given)
        config = run.config
        lines = [run.describe()]
    # Imported late, after what can fail without Paddle.
    load_paddle()
    from ernie_gram.resources.prediction import predict, report

    sequences = config.largest_micro_batch(ranks)
    if run:
        info = run.train.corpus.info
        sizes, shape = CorpusSizes(info.num_tokens, info.num_ngrams), measured_shape(run.train, sequences)
    else:
        sizes, shape = own.assume[0], assumed_shape(config, sequences, own.assume[1])
    prediction = predict(config, sizes, shape, ranks, config.trainer.device == "cpu")
    predicted = report(config, prediction, ranks, own.peak_tflops * 1e12, own.utilisation)
    print("\n".join([*lines, "Predicted, not measured:", predicted]))
    for line in run.warnings() if run else ():
        print_warning(line)


def _check_assumed(config: PretrainConfig, sizes: CorpusSizes) -> None:
    """Raise InputError if settings need the model or the corpus that `sizes` replace."""
    if config.paths.start is not None:
        raise InputError(
            "--assume: the model of paths.start is not read; give its sizes as --model.KEY, and --paths.start null"
        )
    rows = config.model.vocab_size
    if rows is not None and rows < sizes.tokens:
        raise InputError(
            f"--assume: {sizes.tokens} tokens, but model.vocab_size is {rows}; give --model.vocab_size null"
        )
