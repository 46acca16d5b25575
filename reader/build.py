"""Command line of the reader: `python -m reader.build vocab | lexicon | corpus | inspect`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from tqdm import tqdm

from reader.atomic import whole_file
from reader.corpus import build_corpus
from reader.counting import NO_WORD, build_ngrams
from reader.errors import InputError, OneLineParser, one_line_errors
from reader.inspect import coverage, cut_text, describe
from reader.lexicon import Lexicon, LexiconInfo
from reader.text import TextFiles, blocks, find_files
from reader.tokenization import PieceTable, Vocabulary, WordIndex, holds_text, train_vocabulary


def build_vocab(args: argparse.Namespace) -> None:
    """Train a WordPiece vocabulary and write it as vocab.txt."""
    text = open_text(args)
    lines = [line for line in with_progress(text, "reading") if line]
    vocabulary = train_vocabulary(lines, args.size, args.lowercase)
    with whole_file(args.output) as partial:
        partial.write_text("".join(f"{token}\n" for token in vocabulary.tokens), encoding="utf-8")
    print(f"{args.output}: {len(vocabulary):,} tokens")


def build_lexicon(args: argparse.Namespace) -> None:
    """Count n-grams, score them by the t-test, and write the best."""
    vocabulary = Vocabulary.load(args.vocab, args.lowercase)
    text = open_text(args)
    lexicon = count_lexicon(text, with_progress(text, "counting"), vocabulary, args.top, args.max_ngram_tokens)
    lexicon.save(args.output)
    info = lexicon.info
    sizes = ", ".join(f"{sum(len(n.words) == order for n in lexicon.ngrams):,} of {order} words" for order in args.top)
    print(f"{args.output}: {len(lexicon):,} n-grams ({sizes}); {info.totals['1']:,} words counted")
    print(f"left out for having more than {args.max_ngram_tokens} sub-word tokens: {info.left_out:,}")


def count_lexicon(
    text: TextFiles, lines: Iterator[str], vocabulary: Vocabulary, top: dict[int, int], max_ngram_tokens: int
) -> Lexicon:
    """The lexicon of a text.

    Args:
        text: the files; lines: their lines, which may come through a progress bar.
        top: order l -> k_l; max_ngram_tokens: n-grams of more sub-word tokens are left out.
    """
    index = WordIndex(vocabulary.lowercase)
    parts: list[np.ndarray] = []
    for block in blocks(lines):
        ids, starts = index.encode(block)
        # A separator behind every line: no n-gram crosses it.
        parts.append(np.insert(ids, starts[1:], NO_WORD))
    stream = np.concatenate(parts).astype(np.int64)
    is_text = np.array([*map(holds_text, index.words), False])  # the last one serves NO_WORD
    stream[~is_text[stream]] = NO_WORD
    scored, totals = build_ngrams(stream, index.words, top)
    if not scored:
        raise InputError(f"{', '.join(map(str, text.paths))}: too little text for an n-gram of {min(top)} words")

    table = PieceTable(vocabulary)
    table.extend(index.words)
    pieces = dict(zip(index.words, np.diff(table.offsets).tolist(), strict=True))
    kept = [ngram for ngram in scored if sum(pieces[word] for word in ngram.words) <= max_ngram_tokens]
    info = LexiconInfo(
        vocabulary=vocabulary.fingerprint,
        text=text.digest,
        totals={str(order): total for order, total in totals.items()},
        top={str(order): k for order, k in top.items()},
        max_ngram_tokens=max_ngram_tokens,
        left_out=len(scored) - len(kept),
    )
    return Lexicon(kept, info)


def build_corpus_folder(args: argparse.Namespace) -> None:
    """Cut text into units and store them as a corpus."""
    vocabulary = Vocabulary.load(args.vocab, args.lowercase)
    lexicon = Lexicon.load(args.lexicon) if args.lexicon else None
    text = open_text(args)
    with tqdm(total=text.size, unit="B", unit_scale=True, desc="building", mininterval=0.5) as bar:
        info = build_corpus(text, vocabulary, lexicon, args.output, lambda: bar.update(text.position - bar.n))
    print(
        f"{args.output}: {info.documents:,} documents, {info.tokens:,} tokens, {info.units:,} units; "
        f"{info.ngram_units:,} n-grams, {1 - (info.units - info.ngram_units) / info.tokens:.1%} of all tokens"
    )


def inspect_lexicon(args: argparse.Namespace) -> None:
    """Show a lexicon: sizes, quantiles, entries; with a text, how much of it lies in n-grams, and a sample, cut."""
    lexicon = Lexicon.load(args.lexicon)
    if args.input and not args.vocab:
        raise InputError("--vocab: must be given with --input, to cut the text with")
    vocabulary = Vocabulary.load(args.vocab, args.lowercase) if args.input else None
    files = find_files(args.input) if args.input else []
    for line in describe(lexicon, args.entries):
        print(line)
    if vocabulary is None:
        return
    print(f"\n{', '.join(map(str, files))}: {coverage(lexicon, vocabulary, TextFiles(files, args.text_field))}\n")
    lines = TextFiles(files, args.text_field).lines()
    sample = list(islice((line for line in lines if line), args.sample))
    for line in cut_text(lexicon, vocabulary, sample, sys.stdout.isatty()):
        print(line)


def open_text(args: argparse.Namespace) -> TextFiles:
    """The input files; raises InputError before any long work if the output is in the way."""
    if args.output.exists() and not args.overwrite:
        raise InputError(f"{args.output}: exists already; choose another --output or pass --overwrite")
    if args.output.is_dir() and not (args.output / "corpus.json").is_file():
        raise InputError(f"{args.output}: is a folder that holds no corpus; it will not be overwritten")
    return TextFiles(find_files(args.input), args.text_field)


def with_progress(text: TextFiles, what: str) -> Iterator[str]:
    """The lines of a text, with a progress bar over its bytes on disk."""
    with tqdm(total=text.size, unit="B", unit_scale=True, desc=what, mininterval=0.5) as bar:
        for number, line in enumerate(text.lines()):
            if number % 4096 == 0:
                bar.update(text.position - bar.n)
            yield line
        bar.update(text.position - bar.n)


def top_by_order(text: str) -> dict[int, int]:
    """Parse "2:200000,3:100000"."""
    try:
        top = {int(order): int(k) for order, k in (part.split(":") for part in text.split(","))}
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: expected ORDER:K,... such as 2:200000,3:100000") from error
    if any(order < 2 or k < 1 for order, k in top.items()):
        raise argparse.ArgumentTypeError(f"{text!r}: orders start at 2, k at 1")
    return dict(sorted(top.items()))


def positive(text: str) -> int:
    """Parse a whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from 1 on")
    return int(text)


def parser() -> OneLineParser:
    """The command line."""
    reading = OneLineParser(add_help=False)
    reading.add_argument(
        "--text_field", default="text", help="field of a .jsonl record that holds its text (%(default)s)"
    )
    reading.add_argument("--cased", dest="lowercase", action="store_false", help="keep case and accents")
    common = OneLineParser(add_help=False, parents=[reading])
    common.add_argument(
        "--input",
        nargs="+",
        required=True,
        metavar="PATH",
        help="files, folders or quoted globs; .txt (a blank line between documents) or .jsonl, either also .gz",
    )
    common.add_argument("--output", type=Path, required=True, metavar="PATH", help="where the result goes")
    common.add_argument("--overwrite", action="store_true", help="replace what is at --output")
    vocab = OneLineParser(add_help=False)
    vocab.add_argument("--vocab", type=Path, required=True, metavar="FILE", help="vocab.txt in BERT's format")

    main = OneLineParser(prog="python -m reader.build", description=__doc__)
    commands = main.add_subparsers(required=True, metavar="vocab | lexicon | corpus | inspect")

    command = commands.add_parser("vocab", parents=[common], help=build_vocab.__doc__, description=build_vocab.__doc__)
    command.add_argument(
        "--size", type=positive, default=30000, help="most tokens, special ones included (%(default)s)"
    )
    command.set_defaults(run=build_vocab)

    command = commands.add_parser(
        "lexicon", parents=[common, vocab], help=build_lexicon.__doc__, description=build_lexicon.__doc__
    )
    command.add_argument(
        "--top",
        type=top_by_order,
        default="2:200000,3:100000",
        metavar="ORDER:K,...",
        help="how many n-grams of each order to keep (%(default)s, as in the paper)",
    )
    command.add_argument(
        "--max_ngram_tokens", type=positive, default=8, help="leave out n-grams of more sub-word tokens (%(default)s)"
    )
    command.set_defaults(run=build_lexicon)

    command = commands.add_parser(
        "corpus",
        parents=[common, vocab],
        help=build_corpus_folder.__doc__,
        description=build_corpus_folder.__doc__,
    )
    command.add_argument("--lexicon", type=Path, metavar="FILE", help="lexicon.tsv; without it every unit is a token")
    command.set_defaults(run=build_corpus_folder)

    command = commands.add_parser(
        "inspect", parents=[reading], help=inspect_lexicon.__doc__, description=inspect_lexicon.__doc__
    )
    command.add_argument("lexicon", type=Path, metavar="LEXICON", help="a lexicon.tsv")
    command.add_argument("--entries", type=positive, default=10, help="how many of top, middle and end (%(default)s)")
    command.add_argument("--input", nargs="+", metavar="PATH", help="a text to cut with it; files, folders or globs")
    command.add_argument("--vocab", type=Path, metavar="FILE", help="the vocab.txt it was made with, for --input")
    command.add_argument("--sample", type=positive, default=5, help="lines of the text to show, cut (%(default)s)")
    command.set_defaults(run=inspect_lexicon)
    return main


def main() -> None:
    args = parser().parse_args()
    args.run(args)


if __name__ == "__main__":
    one_line_errors(main)
