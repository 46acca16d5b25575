"""The commands of the reader: `ernie-gram vocab | lexicon | corpus | join | check`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from reader.build_messages import print_corpus_summary, print_lexicon_summary
from reader.build_options import OPTIONS, check_output, open_text
from reader.corpus.builder import build_corpus, join_corpora
from reader.corpus.memmap import check_corpus
from reader.corpus.units import UnitCutter, words_to_remember
from reader.errors import InputError, OneLineParser
from reader.lexicon.counting import LocalEngine
from reader.lexicon.extraction import Settings, count_best, make_lexicon
from reader.lexicon.lexicon_file import Lexicon, info_path, is_own_list, own_lexicon
from reader.lexicon.spark_engine import SparkEngine, check_spark, spark_context
from reader.system.lock_files import locked_name
from reader.system.output_files import add_output_file, check_output_path, resumable_folder
from reader.system.progress import progress
from reader.text.input_files import shard_files
from reader.text.map_segments import Resources, max_workers
from reader.text.text_files import TextFiles
from reader.tokenization.sentencepiece import SentencePieceVocabulary, train_sentencepiece
from reader.tokenization.vocabulary import Vocabulary
from reader.tokenization.vocabulary_file import (
    kind_of,
    load_vocabulary,
    note_other_unicode,
    save_vocabulary,
    unicode_path,
)
from reader.tokenization.wordpiece import count_words, train_wordpiece

if TYPE_CHECKING:
    from tqdm import tqdm

# Version of the files in work folders. Increase it when they change, so that no job resumes from an older layout.
WORK_LAYOUT = 6


def build_vocab(args: argparse.Namespace) -> None:
    """Train a vocabulary and write it: a vocab.txt for WordPiece, a .model file for sentencepiece."""
    kind = kind_of(args.output).kind
    if kind != args.tokenizer:
        raise InputError(
            f"--output: {args.output} would be read as {kind}, but --tokenizer is {args.tokenizer}; a sentencepiece "
            "vocabulary must have a name that ends in .model, and no other vocabulary may have one"
        )
    text = open_text(args, folder=False)
    check_output_path("--output", unicode_path(args.output), args.overwrite)
    with progress("reading", text.text_size, "B") as bar:
        lines = nonblank_lines(text, bar)
        train: Callable[[int, bool], Vocabulary]
        if args.tokenizer == SentencePieceVocabulary.kind:
            train = partial(train_sentencepiece, list(lines), han=args.segmenter)
        else:
            train = partial(train_wordpiece, count_words(lines, args.lowercase))
    vocabulary = train(args.size, args.lowercase)
    save_vocabulary(vocabulary, args.output)
    print(f"{args.output}: {len(vocabulary):,} tokens")


def build_lexicon(args: argparse.Namespace) -> None:
    """Count n-grams, score them with the t-test, and write the best ones."""
    if args.master and args.engine != "spark":
        raise InputError("--master: only valid with --engine spark")
    vocabulary = load_vocabulary(args.vocab, args.lowercase)
    note_other_unicode(vocabulary.unicode)
    text = open_text(args, folder=False)
    check_output_path("--output", info_path(args.output), args.overwrite)
    if args.engine == "spark":
        check_spark()  # before the work of a stopped job of the other engine is removed
    settings = Settings(args.lowercase, args.segmenter, args.top, args.min_count)
    plan, resources = resume_plan(args, text, segmenter=args.segmenter, engine=args.engine)
    with resumable_folder(args.output, plan) as folder:
        check_output(args, folder=False)  # another process may have written it meanwhile
        with spark_context(args.master) if args.engine == "spark" else nullcontext() as context:
            engine = SparkEngine(context, text, folder) if context else LocalEngine(text, resources, folder)
            best = count_best(engine, settings)
        lexicon = make_lexicon(best, engine, vocabulary, settings, args.max_ngram_tokens)
        if not len(lexicon):
            raise InputError(
                f"{', '.join(args.input)}: no n-gram is left; use more text, other orders in --top, a lower "
                "--min_count, a higher --max_ngram_tokens, or a --vocab that can spell it"
            )
        lexicon.save(args.output)
    print_lexicon_summary(args.output, lexicon)


def build_corpus_command(args: argparse.Namespace) -> None:
    """Cut text into units and store them as a corpus."""
    vocabulary = load_vocabulary(args.vocab, args.lowercase)
    note_other_unicode(vocabulary.unicode)
    lexicon = None
    if args.lexicon:
        lexicon = (own_lexicon if is_own_list(args.lexicon) else Lexicon.load)(args.lexicon, vocabulary)
    text = open_text(args, folder=True)
    shard = ""
    if args.shard:
        index, num_shards = args.shard
        shard = f"{index + 1}/{num_shards}"
        text = TextFiles(shard_files(text.paths, num_shards)[index], args.text_field)
    made_with = {"vocabulary": vocabulary.fingerprint, "lexicon": lexicon.fingerprint if lexicon else ""}
    plan, resources = resume_plan(args, text, **made_with)
    cutter = UnitCutter(vocabulary, lexicon, max_words=words_to_remember(resources.memory_bytes // resources.workers))
    cutter.check_ngrams()
    with resumable_folder(args.output, plan) as folder:
        check_output(args, folder=True)
        build_corpus(text, cutter, args.output, folder, resources, shard)
    print_corpus_summary(args.output)


def join_command(args: argparse.Namespace) -> None:
    """Join corpora that were built as shards, in the given order."""
    check_output(args, folder=True, inputs=args.input)
    with locked_name(args.output, f"{args.output}: is being written"):
        check_output(args, folder=True, inputs=args.input)  # another process may have written it meanwhile
        join_corpora(args.input, args.output)
    print_corpus_summary(args.output)


def check_command(args: argparse.Namespace) -> None:
    """Check that the files of corpora are unchanged since they were built."""
    damaged = []
    for path in args.corpus:
        try:
            print(f"{path}: {check_corpus(path)}")
        except InputError as error:
            damaged.append(str(error))
    if damaged:
        raise InputError("; ".join(damaged))


def resume_plan(args: argparse.Namespace, text: TextFiles, **other: str) -> tuple[dict[str, Any], Resources]:
    """Return the values that must be unchanged for a stopped job to be resumed, and the resources of this one."""
    resources = Resources(args.memory, min(args.processes, max_workers(args.memory)))
    files = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in text.paths]
    plan = {
        "layout": WORK_LAYOUT,
        "files": files,
        "text_field": args.text_field,
        "lowercase": args.lowercase,
        "segment_bytes": resources.segment_bytes(text),
        **other,
    }
    return plan, resources


def nonblank_lines(text: TextFiles, bar: tqdm[NoReturn]) -> Iterator[str]:
    """Yield the lines of a text that are not blank; `bar` counts its bytes."""
    for line in text.lines():
        bar.update(text.position - bar.n)
        if line:
            yield line


def build_parser() -> OneLineParser:
    """Return the parser of the command line."""
    main = OneLineParser(description=__doc__)
    commands = main.add_subparsers(required=True, metavar="vocab | lexicon | corpus | join | check")

    def add(name: str, run: Callable[[argparse.Namespace], None], *options: str) -> argparse.ArgumentParser:
        parser = commands.add_parser(name, help=run.__doc__, description=run.__doc__)
        parser.set_defaults(run=run)
        for option in options:
            parser.add_argument(option, **OPTIONS[option])
        return parser

    text = "--input", "--text_field", "--cased"
    resources = "--memory", "--processes"
    counting = "--top", "--min_count", "--max_ngram_tokens", "--engine", "--master"
    vocab = add("vocab", build_vocab, *text, "--segmenter", "--tokenizer", "--size")
    lexicon = add("lexicon", build_lexicon, *text, "--vocab", "--segmenter", *resources, *counting)
    corpus = add("corpus", build_corpus_command, *text, "--vocab", "--lexicon", "--shard", *resources)
    join = add("join", join_command)
    join.add_argument("--input", type=Path, nargs="+", required=True, metavar="DIR", help="corpora, in order")
    for parser in (vocab, lexicon):
        add_output_file(parser, "the file to write", required=True)
    for parser in (corpus, join):
        add_output_file(parser, "the folder to write", type=Path, metavar="DIR", required=True)
    add("check", check_command).add_argument("corpus", type=Path, nargs="+", metavar="CORPUS", help="corpora")
    return main


def main() -> None:
    args = build_parser().parse_args()
    args.run(args)
