"""Command line of the reader: `python -m reader.build vocab | lexicon | corpus | join | inspect`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from reader.build_options import by_order, positive, shard, shared_options
from reader.corpus.builder import build_corpus, join_corpora
from reader.corpus.memmap import Corpus
from reader.errors import InputError, OneLineParser, one_line_errors
from reader.lexicon.extraction import Counted, CountingJob, Engine, Settings
from reader.lexicon.lexicon_file import Lexicon, LexiconInfo
from reader.lexicon.local_engine import LocalEngine
from reader.lexicon.spark_engine import SparkEngine
from reader.lexicon.spark_session import spark_context
from reader.lexicon_report import coverage, cut_text, describe
from reader.system.atomic_files import atomic_file
from reader.system.resumable_folder import resumable_folder
from reader.text.input_files import CORPUS_INFO, find_files, shard_files
from reader.text.map_segments import Resources, max_workers
from reader.text.text_files import TextFiles
from reader.tokenization.piece_table import PieceTable
from reader.tokenization.sentencepiece import SentencePieceVocabulary, train_sentencepiece
from reader.tokenization.vocabulary import Vocabulary
from reader.tokenization.vocabulary_file import KINDS, kind_of, load_vocabulary
from reader.tokenization.wordpiece import train_wordpiece

# Of what lies in work folders; raised when it changes, so that nothing of another layout is taken up.
WORK_LAYOUT = 2


def build_vocab(args: argparse.Namespace) -> None:
    """Train a vocabulary and write it: WordPiece's is a vocab.txt, sentencepiece's a .model."""
    found = kind_of(args.output).kind
    if found != args.tokenizer:
        raise InputError(
            f"--output: {args.output} would be read as {found}, --tokenizer is {args.tokenizer}; a name that ends in "
            ".model is sentencepiece's"
        )
    text = open_text(args, folder=False)
    lines = [line for line in with_progress(text, "reading") if line]
    vocabulary: Vocabulary
    if args.tokenizer == SentencePieceVocabulary.kind:
        vocabulary = train_sentencepiece(lines, args.size, args.lowercase, args.segmenter)
    else:
        vocabulary = train_wordpiece(lines, args.size, args.lowercase)
    with atomic_file(args.output) as partial:
        partial.write_bytes(vocabulary.content)
    print(f"{args.output}: {len(vocabulary):,} tokens")


def build_lexicon(args: argparse.Namespace) -> None:
    """Count n-grams, score them by the t-test, and write the best."""
    if args.master and args.engine != "spark":
        raise InputError("--master: is for --engine spark")
    vocabulary = load_vocabulary(args.vocab, args.lowercase)
    if unknown := args.threshold.keys() - args.top.keys():
        raise InputError(f"--threshold: order {min(unknown)} is not among those of --top")
    text = open_text(args, folder=False)
    settings = Settings(args.lowercase, args.segmenter, args.top, args.threshold)
    plan = plan_of(args, text, resources_of(args), segmenter=args.segmenter, engine=args.engine)
    with resumable_folder(args.output, plan) as folder:
        with counting_engine(args, text, folder) as engine:
            counted = CountingJob(engine, settings, tqdm.write).run()
        lexicon = lexicon_of(counted, vocabulary, settings, args.max_ngram_tokens)
        if not len(lexicon):
            raise InputError(f"{', '.join(args.input)}: {no_ngrams(lexicon.info, min(args.top))}")
        lexicon.save(args.output)
    info = lexicon.info
    sizes = ", ".join(f"{(lexicon.ngrams.orders == order).sum():,} of {order} words" for order in args.top)
    print(f"{args.output}: {len(lexicon):,} n-grams ({sizes}); {info.totals['1']:,} words counted")
    print(f"left out for having more than {args.max_ngram_tokens} sub-word tokens, or one: {info.left_out:,}")


def no_ngrams(info: LexiconInfo, order: int) -> str:
    """Why there are none, of this order and above."""
    if info.left_out:
        return (
            f"all {info.left_out:,} n-grams have one sub-word token, or more than {info.max_ngram_tokens} "
            "(--max_ngram_tokens)"
        )
    return "no words of several Han characters" if order == 1 else f"too little text for an n-gram of {order} words"


@contextmanager
def counting_engine(args: argparse.Namespace, text: TextFiles, folder: Path) -> Iterator[Engine]:
    """What goes through the text; `folder` is for what the local engine has finished."""
    if args.engine == "local":
        yield LocalEngine(text, resources_of(args), folder)
        return
    with spark_context(args.master) as context:
        yield SparkEngine(context, text)


def lexicon_of(counted: Counted, vocabulary: Vocabulary, settings: Settings, max_ngram_tokens: int) -> Lexicon:
    """The lexicon of what was counted, without n-grams of more than `max_ngram_tokens` sub-word tokens.

    Nor with those of one: a word of Han characters may be a token of sentencepiece, and needs no second identity.
    """
    best = counted.best
    table = PieceTable(vocabulary)
    table.extend(best.words)
    ends = np.concatenate([[0], np.cumsum(np.diff(table.offsets)[best.numbers])])
    tokens = np.diff(ends[best.offsets])
    kept = best.chosen((tokens > 1) & (tokens <= max_ngram_tokens))
    info = LexiconInfo(
        vocabulary=vocabulary.fingerprint,
        han=settings.han,
        text=counted.text,
        totals={str(order): total for order, total in counted.totals.items()},
        top={str(order): k for order, k in settings.top.items()},
        max_ngram_tokens=max_ngram_tokens,
        left_out=len(best.counts) - len(kept.counts),
    )
    return Lexicon(kept, info)


def build_corpus_folder(args: argparse.Namespace) -> None:
    """Cut text into units and store them as a corpus."""
    vocabulary = load_vocabulary(args.vocab, args.lowercase)
    lexicon = Lexicon.load(args.lexicon) if args.lexicon else None
    text = open_text(args, folder=True)
    if args.shard:
        text = TextFiles(shard_files(text.paths, *args.shard), args.text_field)
    resources = resources_of(args)
    made_with = {"vocabulary": vocabulary.fingerprint, "lexicon": lexicon.fingerprint if lexicon else ""}
    with resumable_folder(args.output, plan_of(args, text, resources, **made_with)) as folder:
        build_corpus(text, vocabulary, lexicon, args.output, folder, resources)
    tell_corpus(args.output)


def join(args: argparse.Namespace) -> None:
    """Join corpora that were built as shards, in the order given."""
    check_output(args, folder=True)
    join_corpora(args.input, args.output)
    tell_corpus(args.output)


def tell_corpus(path: Path) -> None:
    """Print what a corpus holds."""
    corpus = Corpus(path)
    info = corpus.info
    print(
        f"{path}: {info.documents:,} documents, {info.tokens:,} tokens, {info.units:,} units; "
        f"{info.ngram_units:,} n-grams, {1 - (info.units - info.ngram_units) / info.tokens:.1%} of all tokens"
    )
    if info.ngram_units:
        frequent = np.argsort(-corpus.unit_counts[info.num_tokens :], kind="stable")[:10] + info.num_tokens
        frequent = frequent[corpus.unit_counts[frequent] > 0]
        shown = (f"{corpus.names.text(int(unit))} ({corpus.unit_counts[unit]:,})" for unit in frequent)
        print(f"most frequent: {', '.join(shown)}")


def plan_of(args: argparse.Namespace, text: TextFiles, resources: Resources, **more: str) -> dict[str, Any]:
    """What must be the same for a stopped job to go on."""
    files = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in text.paths]
    return {
        "layout": WORK_LAYOUT,
        "files": files,
        "text_field": args.text_field,
        "lowercase": args.lowercase,
        "segment_bytes": resources.segment_bytes(text),
        **more,
    }


def inspect_lexicon(args: argparse.Namespace) -> None:
    """Show a lexicon: sizes, quantiles, entries; with a text, how much of it lies in n-grams, and a sample, cut."""
    lexicon = Lexicon.load(args.lexicon)
    if args.input and not args.vocab:
        raise InputError("--vocab: must be given with --input, to cut the text with")
    if args.vocab and not args.input:
        raise InputError("--vocab: is for cutting a text; give one by --input")
    vocabulary = load_vocabulary(args.vocab, args.lowercase) if args.input else None
    files = find_files(args.input, [args.vocab]) if args.input else []
    for line in describe(lexicon, args.entries):
        print(line)
    if vocabulary is None:
        return
    print(f"\n{', '.join(map(str, files))}: {coverage(lexicon, vocabulary, TextFiles(files, args.text_field))}\n")
    lines = TextFiles(files, args.text_field).lines()
    sample = list(islice((line for line in lines if line), args.sample))
    for line in cut_text(lexicon, vocabulary, sample, sys.stdout.isatty()):
        print(line)


def resources_of(args: argparse.Namespace) -> Resources:
    """What --memory and --workers allow."""
    return Resources(args.memory, min(args.workers, max_workers(args.memory)))


def open_text(args: argparse.Namespace, folder: bool) -> TextFiles:
    """The input files; raises InputError if --output cannot become what is to be made, a file or a `folder`."""
    check_output(args, folder)
    other = [args.output, *([args.vocab] if "vocab" in args else [])]
    return TextFiles(find_files(args.input, other), args.text_field)


def check_output(args: argparse.Namespace, folder: bool) -> None:
    """Raise InputError if something is at --output that should stay, or is no folder if one is to be made."""
    output: Path = args.output
    if not output.name:
        raise InputError(f"--output: {output} has no name; give the path of what is to be made")
    if output.exists() and not args.overwrite:
        raise InputError(f"{output}: exists already; choose another --output or pass --overwrite")
    if output.exists() and output.is_dir() != folder:
        is_now, wanted = ("a folder", "a file") if output.is_dir() else ("a file", "a folder")
        raise InputError(f"{output}: is {is_now}, and {wanted} is to be made; choose another --output")
    if output.is_dir() and not (output / CORPUS_INFO).is_file():
        raise InputError(f"{output}: is a folder that holds no corpus; it will not be overwritten")


def with_progress(text: TextFiles, what: str) -> Iterator[str]:
    """The lines of a text, with a progress bar over its bytes on disk."""
    with tqdm(total=text.size, unit="B", unit_scale=True, desc=what, mininterval=0.5) as bar:
        for number, line in enumerate(text.lines()):
            if number % 4096 == 0:
                bar.update(text.position - bar.n)
            yield line
        bar.update(text.position - bar.n)


def parser() -> OneLineParser:
    """The command line."""
    reading, output, common, large, vocab, han = shared_options()
    main = OneLineParser(prog="python -m reader.build", description=__doc__)
    commands = main.add_subparsers(required=True, metavar="vocab | lexicon | corpus | join | inspect")

    command = commands.add_parser(
        "vocab", parents=[common, han], help=build_vocab.__doc__, description=build_vocab.__doc__
    )
    command.add_argument(
        "--tokenizer",
        choices=[kind.kind for kind in KINDS],
        default=KINDS[0].kind,
        help="how words are cut into tokens (%(default)s)",
    )
    command.add_argument(
        "--size", type=positive, default=30000, help="most tokens, special ones included (%(default)s)"
    )
    command.set_defaults(run=build_vocab)

    command = commands.add_parser(
        "lexicon", parents=[common, vocab, han, large], help=build_lexicon.__doc__, description=build_lexicon.__doc__
    )
    command.add_argument(
        "--top",
        type=by_order,
        default="2:200000,3:100000",
        metavar="ORDER:K,...",
        help="how many n-grams of each order to keep (%(default)s, as in the paper); order 1, which the paper has not, "
        "takes whole words of several Han characters, by their counts",
    )
    command.add_argument(
        "--threshold",
        type=by_order,
        default={},
        metavar="ORDER:COUNT,...",
        help="leave out n-grams that occur less often, instead of guessing from when on they cannot be among the best; "
        "a number found too high in the end is lowered, and the counting repeated",
    )
    command.add_argument(
        "--max_ngram_tokens", type=positive, default=8, help="leave out n-grams of more sub-word tokens (%(default)s)"
    )
    command.add_argument(
        "--engine",
        choices=("local", "spark"),
        default="local",
        help="what counts: this machine's processes, or Spark, which has its own say on memory and cores (%(default)s)",
    )
    command.add_argument(
        "--master",
        metavar="URL",
        help="Spark's, such as local[8], yarn or spark://HOST:7077 (local[*])",
    )
    command.set_defaults(run=build_lexicon)

    command = commands.add_parser(
        "corpus",
        parents=[common, vocab, large],
        help=build_corpus_folder.__doc__,
        description=build_corpus_folder.__doc__,
    )
    command.add_argument(
        "--lexicon",
        type=Path,
        metavar="FILE",
        help="lexicon.tsv, whose segmenter is used; without it every unit is a token, every Han character a word",
    )
    command.add_argument(
        "--shard",
        type=shard,
        metavar="I/N",
        help="build the I-th of N shards, of whole files, on a machine of its own; `join` puts them together",
    )
    command.set_defaults(run=build_corpus_folder)

    command = commands.add_parser("join", parents=[output], help=join.__doc__, description=join.__doc__)
    command.add_argument("--input", type=Path, nargs="+", required=True, metavar="DIR", help="corpora, in their order")
    command.set_defaults(run=join)

    command = commands.add_parser(
        "inspect", parents=[reading], help=inspect_lexicon.__doc__, description=inspect_lexicon.__doc__
    )
    command.add_argument("lexicon", type=Path, metavar="LEXICON", help="a lexicon.tsv")
    command.add_argument("--entries", type=positive, default=10, help="how many of top, middle and end (%(default)s)")
    command.add_argument("--input", nargs="+", metavar="PATH", help="a text to cut with it; files, folders or globs")
    command.add_argument("--vocab", type=Path, metavar="FILE", help="the vocabulary it was made with, for --input")
    command.add_argument("--sample", type=positive, default=5, help="lines of the text to show, cut (%(default)s)")
    command.set_defaults(run=inspect_lexicon)
    return main


def main() -> None:
    args = parser().parse_args()
    args.run(args)


if __name__ == "__main__":
    one_line_errors(main)
