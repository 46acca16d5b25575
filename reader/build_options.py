"""The options of the reader's commands: parsers for values, and the table of the options."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from reader.lexicon.counting import MAX_ORDER
from reader.system.processes import available_cores
from reader.text.map_segments import BASE_MEMORY_BYTES
from reader.tokenization.basic_tokenizer import SEGMENTERS


def parse_orders(text: str) -> dict[int, int]:
    """Parse "2:200000,3:100000" as {2: 200000, 3: 100000}."""
    try:
        pairs = [(int(order), int(number)) for order, number in (part.split(":") for part in text.split(","))]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: expected ORDER:NUMBER,... such as 2:200000,3:100000") from error
    if any(not 1 <= order <= MAX_ORDER or number < 1 for order, number in pairs):
        raise argparse.ArgumentTypeError(f"{text!r}: orders must be 1 to {MAX_ORDER}, and numbers at least 1")
    if len(dict(pairs)) < len(pairs):
        raise argparse.ArgumentTypeError(f"{text!r}: an order is given twice")
    return dict(sorted(pairs))


def parse_memory(text: str) -> int:
    """Parse "2GB" or "500MB" as a number of bytes (units are powers of 1000) with which a command can work."""
    found = re.fullmatch(r"(\d*\.?\d+)\s*([MG])B?", text.strip().upper())
    if not found or not float(found[1]):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a size such as 500MB or 2GB")
    size = int(float(found[1]) * {"M": 10**6, "G": 10**9}[found[2]])
    if size < 2 * BASE_MEMORY_BYTES:
        raise argparse.ArgumentTypeError(
            f"{text!r}: too little memory; at least {2 * BASE_MEMORY_BYTES / 1e6:.0f}MB are needed"
        )
    return size


def parse_positive(text: str) -> int:
    """Parse an integer that is at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected an integer of at least 1")
    return int(text)


# The options of the commands, but for --output and --overwrite.
OPTIONS: dict[str, dict[str, Any]] = {
    "--input": {
        "nargs": "+",
        "required": True,
        "metavar": "PATH",
        "help": "files, folders or quoted globs (skipped in folders: hidden files, and vocab.txt)"
        "; .txt (a blank line between documents) or .jsonl (one document per line), optionally compressed as .gz",
    },
    "--text_field": {
        "default": "text",
        "help": "field of a .jsonl record that contains its text; doc.body is body inside doc (%(default)s)",
    },
    "--cased": {"dest": "lowercase", "action": "store_false", "help": "keep case and accents"},
    "--vocab": {
        "type": Path,
        "required": True,
        "metavar": "FILE",
        "help": "vocab.txt in BERT's format, or a .model file of sentencepiece",
    },
    "--segmenter": {
        "choices": SEGMENTERS,
        "default": SEGMENTERS[0],
        "help": "how Han characters are split into words: jieba; char (each character is a word); space (words are "
        "already separated by spaces). WordPiece splits such words into single characters in any case (%(default)s)",
    },
    "--memory": {
        "type": parse_memory,
        "default": "2GB",
        "metavar": "SIZE",
        "help": "maximum memory of all processes together; give 0.5GB or more for each (%(default)s)",
    },
    "--processes": {
        "type": parse_positive,
        "default": available_cores(),
        "metavar": "N",
        "help": "number of processes (default: all cores, here %(default)s)",
    },
    "--size": {
        "type": parse_positive,
        "default": 30000,
        "help": "maximum number of tokens, including special tokens (%(default)s)",
    },
    "--top": {
        "type": parse_orders,
        "default": "2:200000,3:100000",
        "metavar": "ORDER:K,...",
        "help": "number of n-grams to keep for each order (%(default)s, as in the paper); order 1, which the paper "
        "does not use, keeps words of several Han characters, ranked by count",
    },
    "--min_count": {
        "type": parse_positive,
        "default": 1,
        "metavar": "N",
        "help": "leave out n-grams that occur less than N times in the text; --top then selects among the others "
        "(%(default)s)",
    },
    "--max_ngram_tokens": {
        "type": parse_positive,
        "default": 8,
        "help": "leave out n-grams of more sub-word tokens (%(default)s)",
    },
    "--master": {
        "metavar": "URL",
        "help": "count with Spark at this URL, such as local[8], yarn or spark://HOST:7077; Spark has its own settings "
        "for memory and cores",
    },
    "--lexicon": {
        "type": Path,
        "metavar": "FILE",
        "help": "a lexicon.tsv; its segmenter is used. Or a list of phrases of your own, one a line (docs/building.md)."
        " Without a lexicon every unit is a token, and every Han character a word",
    },
}
