"""The command that follows each command of the reader: vocab -> lexicon -> corpus -> training."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from reader.text.input_files import CORPUS_INFO
from reader.tokenization.chinese_segmentation import SEGMENTERS

ROOT = Path(__file__).resolve().parents[1]
LAUNCHER, CONFIG = "run_pretrain.sh", "conf/pretrain/small_en.yaml"
BUILD = ("python", "-m", "reader.build")
# The name of the corpus for evaluation, as in README.md.
HELD_OUT = "held_out"


def after_vocab(args: argparse.Namespace) -> str:
    """Return the command that makes a lexicon of the same text."""
    segmenter = [] if args.segmenter == SEGMENTERS[0] else ["--segmenter", args.segmenter]
    made_with = ["--vocab", args.output, *segmenter]
    return _command(*BUILD, "lexicon", *_text_options(args), *made_with, "--output", _free(args.output, "lexicon.tsv"))


def after_lexicon(args: argparse.Namespace) -> str:
    """Return the command that makes a corpus of the same text."""
    made_with = ["--vocab", args.vocab, "--lexicon", args.output]
    return _command(*BUILD, "corpus", *_text_options(args), *made_with, "--output", _free(args.output, "corpus"))


def after_corpus(args: argparse.Namespace) -> str:
    """Return the command that trains on the corpus; for a shard, the command that joins the shards."""
    if args.shard:
        num_shards = args.shard[1]
        joined = _command("--output", _free(args.output, "corpus"))
        return f"{_command(*BUILD, 'join', '--input')} SHARD_1 ... SHARD_{num_shards} {joined}"
    return after_join(args)


def after_join(args: argparse.Namespace) -> str:
    """Return the command that trains on the corpus.

    A corpus called held_out is the one for evaluation, and the corpus beside it is the one for training.
    """
    output: Path = args.output
    if output.name == HELD_OUT:
        corpus, held_out = output.with_name("corpus"), output
    else:
        corpus, held_out = output, output.with_name(HELD_OUT)
    has_held_out = (held_out / CORPUS_INFO).is_file()
    paths = ["--paths.corpus", corpus, "--paths.held_out", held_out if has_held_out else "null"]
    return _command(*_launcher(), *paths, "--paths.output", _free(output, "run"))


def _launcher() -> list[object]:
    """Return the start of the training command, which depends on whether this is a checkout."""
    if not (ROOT / LAUNCHER).is_file():
        return ["python", "-m", "ernie_gram.pretrain"]
    return [f"./{LAUNCHER}", CONFIG] if Path.cwd() == ROOT else [ROOT / LAUNCHER, ROOT / CONFIG]


def _text_options(args: argparse.Namespace) -> list[object]:
    field = [] if args.text_field == "text" else ["--text_field", args.text_field]
    return ["--input", *args.input, *field, *([] if args.lowercase else ["--cased"])]


def _free(beside: Path, name: str) -> Path:
    """Return a path in the folder of `beside` that does not exist: `name`, or `name` with a number."""
    path = free = beside.with_name(name)
    number = 2
    while free.exists():
        free, number = path.with_name(f"{path.stem}_{number}{path.suffix}"), number + 1
    return free


def _command(*words: object) -> str:
    return shlex.join(map(str, words))
