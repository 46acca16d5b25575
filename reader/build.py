"""The commands of the reader: `ernie-gram vocab | lexicon | corpus`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from reader.build_options import OPTIONS
from reader.corpus.builder import build_corpus
from reader.corpus.memmap import Corpus, large_lexicon_warning
from reader.corpus.units import UnitCutter, words_to_remember
from reader.errors import InputError, OneLineParser, counted, print_warning
from reader.lexicon.counting import LocalEngine
from reader.lexicon.extraction import Settings, count_best, make_lexicon
from reader.lexicon.lexicon_file import Lexicon, info_path, is_own_list, own_lexicon
from reader.lexicon.spark_engine import SparkEngine, check_spark, spark_context
from reader.system.output_files import add_output_file, check_new_folder, check_output_path, resumable_folder
from reader.system.progress import progress
from reader.text.input_files import find_files
from reader.text.map_segments import Resources, max_workers
from reader.text.text_files import TextFiles
from reader.tokenization.sentencepiece import SentencePieceVocabulary, train_sentencepiece
from reader.tokenization.vocabulary import Vocabulary, unknown_warning
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
ADVICE = (
    "give a --vocab of the text's language, or a larger one (`ernie-gram vocab --size` makes one from the text); with "
    "--cased, it needs capital letters"
)


def build_vocab(args: argparse.Namespace) -> None:
    """Train a vocabulary and write it: a vocab.txt for WordPiece, a .model file for sentencepiece."""
    text = open_text(args)
    for path in (args.output, unicode_path(args.output)):
        check_output_path("--output", path, args.overwrite, text.paths)
    with progress("reading", text.text_size, "B") as bar:
        lines = nonblank_lines(text, bar)
        train: Callable[[int, bool], Vocabulary]
        if kind_of(args.output) is SentencePieceVocabulary:
            train = partial(train_sentencepiece, list(lines), han=args.segmenter)
        else:
            train = partial(train_wordpiece, count_words(lines, args.lowercase))
    vocabulary = train(args.size, args.lowercase)
    save_vocabulary(vocabulary, args.output)
    print(f"{args.output}: {len(vocabulary):,} tokens")


def build_lexicon(args: argparse.Namespace) -> None:
    """Count n-grams, score them with the t-test, and write the best ones."""
    vocabulary = load_vocabulary(args.vocab, args.lowercase)
    note_other_unicode(vocabulary.unicode)
    text = open_text(args)
    for path in (args.output, info_path(args.output)):
        check_output_path("--output", path, args.overwrite, [*text.paths, args.vocab])
    if args.master:
        check_spark()  # before the work of a stopped job of the other engine is removed
    settings = Settings(args.lowercase, args.segmenter, args.top, args.min_count)
    plan, resources = resume_plan(args, text, segmenter=args.segmenter, engine="spark" if args.master else "local")
    with resumable_folder(args.output, plan) as folder:
        # Another process may have written it meanwhile.
        check_output_path("--output", args.output, args.overwrite)
        with spark_context(args.master) if args.master else nullcontext() as context:
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
    text = open_text(args)
    check_new_folder(args.output)
    made_with = {"vocabulary": vocabulary.fingerprint, "lexicon": lexicon.fingerprint if lexicon else ""}
    plan, resources = resume_plan(args, text, **made_with)
    cutter = UnitCutter(vocabulary, lexicon, max_words=words_to_remember(resources.memory_bytes // resources.workers))
    cutter.check_ngrams()
    with resumable_folder(args.output, plan) as folder:
        check_new_folder(args.output)  # another process may have written it meanwhile
        build_corpus(text, cutter, args.output, folder, resources)
    print_corpus_summary(args.output)


def print_lexicon_summary(path: Path, lexicon: Lexicon) -> None:
    """Print the size of a lexicon."""
    info, orders = lexicon.info, lexicon.ngrams.orders
    sizes = ", ".join(f"{(orders == order).sum():,} of {counted(order, 'word')}" for order in map(int, info.top))
    print(f"{path}: {counted(len(lexicon), 'n-gram')} ({sizes}); {counted(info.totals['1'], 'word')} counted")
    left_out = counted(info.left_out, "n-gram")
    print(f"left out: {left_out} with a single sub-word token, with more than {info.max_ngram_tokens}, or with [UNK]")


def print_corpus_summary(path: Path) -> None:
    """Print the size of a corpus and its share of [UNK]."""
    corpus = Corpus(path)
    info = corpus.info
    print(
        f"{path}: {counted(info.documents, 'document')}, {counted(info.tokens, 'token')}, "
        f"{counted(info.units, 'unit')}; {counted(info.ngram_units, 'n-gram')} with "
        f"{1 - (info.units - info.ngram_units) / info.tokens:.1%} of all tokens; "
        f"{corpus.unknown_share:.2%} of all tokens are [UNK]"
    )
    if warning := unknown_warning(corpus.unknown_share, ADVICE):
        print_warning(f"{path}: {warning}")
    # Only for the text from which the lexicon was made: other text, such as held-out text, may be small.
    is_its_text = corpus.lexicon is not None and corpus.lexicon.info.text == info.text
    if (is_its_text or not info.ngram_units) and (warning := large_lexicon_warning(corpus)):
        print_warning(f"{path}: {warning}")


def open_text(args: argparse.Namespace) -> TextFiles:
    """Return the input text. The other files that a command reads may be in the same folder."""
    other = [path for name in ("vocab", "lexicon") if (path := getattr(args, name, None))]
    return TextFiles(find_files(args.input, other), args.text_field)


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
    commands = main.add_subparsers(required=True, metavar="vocab | lexicon | corpus")

    def add(name: str, run: Callable[[argparse.Namespace], None], *options: str) -> argparse.ArgumentParser:
        parser = commands.add_parser(name, help=run.__doc__, description=run.__doc__)
        parser.set_defaults(run=run)
        for option in options:
            parser.add_argument(option, **OPTIONS[option])
        return parser

    text = "--input", "--text_field", "--cased"
    resources = "--memory", "--processes"
    counting = "--top", "--min_count", "--max_ngram_tokens", "--master"
    vocab = add("vocab", build_vocab, *text, "--segmenter", "--size")
    lexicon = add("lexicon", build_lexicon, *text, "--vocab", "--segmenter", *resources, *counting)
    corpus = add("corpus", build_corpus_command, *text, "--vocab", "--lexicon", *resources)
    add_output_file(vocab, "the file to write; if its name ends in .model, a sentencepiece model", required=True)
    add_output_file(lexicon, "the file to write", required=True)
    corpus.add_argument("--output", type=Path, metavar="DIR", required=True, help="the folder to make")
    return main


def main() -> None:
    args = build_parser().parse_args()
    args.run(args)
