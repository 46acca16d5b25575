"""Options that several of the reader's commands share, and what may stand behind an option."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import NamedTuple

from reader.errors import OneLineParser
from reader.lexicon.counting_stages import MAX_ORDER
from reader.text.map_segments import BASE_MEMORY_BYTES
from reader.tokenization.chinese_segmentation import SEGMENTERS


def by_order(text: str) -> dict[int, int]:
    """Parse "2:200000,3:100000"."""
    try:
        pairs = [(int(order), int(number)) for order, number in (part.split(":") for part in text.split(","))]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: expected ORDER:NUMBER,... such as 2:200000,3:100000") from error
    if any(not 1 <= order <= MAX_ORDER or number < 1 for order, number in pairs):
        raise argparse.ArgumentTypeError(f"{text!r}: orders go from 1 to {MAX_ORDER}, numbers start at 1")
    if len(dict(pairs)) < len(pairs):
        raise argparse.ArgumentTypeError(f"{text!r}: an order is given twice")
    return dict(sorted(pairs))


def memory(text: str) -> int:
    """Parse "2GB" or "500MB"."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([MG])B?", text.strip().upper())
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a size such as 500MB or 2GB")
    size = int(float(found[1]) * {"M": 10**6, "G": 10**9}[found[2]])
    if size < 2 * BASE_MEMORY_BYTES:
        raise argparse.ArgumentTypeError(
            f"{text!r}: too little; at least {2 * BASE_MEMORY_BYTES / 1e6:.0f}MB are needed"
        )
    return size


def shard(text: str) -> tuple[int, int]:
    """Parse "2/8", the second of eight, as (1, 8)."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise argparse.ArgumentTypeError(f"{text!r}: expected I/N with I from 1 to N, such as 2/8")
    return int(found[1]) - 1, int(found[2])


def positive(text: str) -> int:
    """Parse a whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from 1 on")
    return int(text)


class SharedOptions(NamedTuple):
    """Groups of options, each to be the parent of a command's parser.

    reading: how text is read; output: where the result goes; common: the two, and the text itself; large: memory and
    processes; vocab: the vocabulary; han: how Han characters are cut into words.
    """

    reading: OneLineParser
    output: OneLineParser
    common: OneLineParser
    large: OneLineParser
    vocab: OneLineParser
    han: OneLineParser


def shared_options() -> SharedOptions:
    """The groups, made anew."""
    reading = OneLineParser(add_help=False)
    reading.add_argument(
        "--text_field", default="text", help="field of a .jsonl record that holds its text (%(default)s)"
    )
    reading.add_argument("--cased", dest="lowercase", action="store_false", help="keep case and accents")
    output = OneLineParser(add_help=False)
    output.add_argument("--output", type=Path, required=True, metavar="PATH", help="where the result goes")
    output.add_argument("--overwrite", action="store_true", help="replace what is at --output")
    common = OneLineParser(add_help=False, parents=[reading, output])
    common.add_argument(
        "--input",
        nargs="+",
        required=True,
        metavar="PATH",
        help="files, folders (without what is hidden, and corpora) or quoted globs; .txt (a blank line between "
        "documents) or .jsonl, either also .gz",
    )
    large = OneLineParser(add_help=False)
    large.add_argument(
        "--memory", type=memory, default="2GB", metavar="SIZE", help="most memory of all processes (%(default)s)"
    )
    large.add_argument(
        "--workers", type=positive, default=os.cpu_count() or 1, metavar="N", help="processes (all cores: %(default)s)"
    )
    vocab = OneLineParser(add_help=False)
    vocab.add_argument(
        "--vocab",
        type=Path,
        required=True,
        metavar="FILE",
        help="vocab.txt in BERT's format, or a .model of sentencepiece",
    )
    han = OneLineParser(add_help=False)
    han.add_argument(
        "--segmenter",
        choices=SEGMENTERS,
        default=SEGMENTERS[0],
        help="how words of Han characters are found: jieba, rjieba (much the same, slower), char: each character "
        "is a word, space: they are parted by spaces already; WordPiece takes each character apart nonetheless "
        "(%(default)s)",
    )
    return SharedOptions(reading, output, common, large, vocab, han)
