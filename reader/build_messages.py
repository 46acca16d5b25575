"""Messages of the reader's commands: a summary of the result, warnings, and the next command."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reader.console_script import PROGRAM
from reader.corpus.memmap import Corpus, CorpusInfo
from reader.corpus.occurrences import large_lexicon_warning
from reader.errors import InputError, counted, print_warning
from reader.lexicon.lexicon_file import Lexicon
from reader.text.input_files import CORPUS_INFO
from reader.tokenization.basic_tokenizer import is_han
from reader.tokenization.chinese_segmentation import SEGMENTERS
from reader.tokenization.vocabulary import Vocabulary, unknown_warning

CONFIG, CHINESE_CONFIG = "conf/pretrain/small_en.yaml", "conf/pretrain/small_zh.yaml"
BERT_CONFIG = "conf/pretrain/from_bert_en.yaml"  # for a corpus with the vocabulary of a BERT
# The name of the corpus for evaluation, as in README.md.
HELD_OUT = "held_out"
ADVICE = "give a --vocab of the text's language, or a larger one; `ernie-gram vocab --size` makes one from the text"


def print_lexicon_summary(path: Path, lexicon: Lexicon, orders: Sequence[int], unknown: float) -> None:
    """Print the size of a lexicon, and the share of [UNK] in the tokens of the words."""
    info = lexicon.info
    sizes = ", ".join(f"{(lexicon.ngrams.orders == order).sum():,} of {counted(order, 'word')}" for order in orders)
    print(
        f"{path}: {counted(len(lexicon), 'n-gram')} ({sizes}); {counted(info.totals['1'], 'word')} counted; "
        f"{unknown:.2%} of the tokens of frequent words are [UNK]"
    )
    left_out = counted(info.left_out, "n-gram")
    print(f"left out: {left_out} with a single sub-word token, with more than {info.max_ngram_tokens}, or with [UNK]")


def print_corpus_summary(path: Path) -> None:
    """Print the size of a corpus, its share of [UNK] and its most frequent n-grams."""
    corpus = Corpus(path)
    info = corpus.info
    print(
        f"{path}: {counted(info.documents, 'document')}, {counted(info.tokens, 'token')}, "
        f"{counted(info.units, 'unit')}; {counted(info.ngram_units, 'n-gram')} with "
        f"{1 - (info.units - info.ngram_units) / info.tokens:.1%} of all tokens; "
        f"{corpus.unknown_share:.2%} of all tokens are [UNK]"
    )
    if info.ngram_units:
        frequent = np.argsort(-corpus.unit_counts[info.num_tokens :], kind="stable")[:10] + info.num_tokens
        frequent = frequent[corpus.unit_counts[frequent] > 0]
        shown = (f"{corpus.names.text(int(unit))} ({corpus.unit_counts[unit]:,})" for unit in frequent)
        print(f"most frequent n-grams: {', '.join(shown)}")
    warn_of_unknown_tokens(str(path), corpus.unknown_share, corpus.vocabulary)
    # Only for the text from which the lexicon was made: other text, such as held-out text, may be small.
    is_its_text = corpus.lexicon is not None and corpus.lexicon.info.text == info.text
    if (is_its_text or not info.ngram_units) and (warning := large_lexicon_warning(corpus)):
        print_warning(f"{path}: {warning}")


def warn_of_unknown_tokens(source: str, share: float, vocabulary: Vocabulary) -> None:
    """Print a warning on standard error if too many tokens of a text are [UNK]."""
    if warning := unknown_warning(share, vocabulary, ADVICE):
        print_warning(f"{source}: {warning}")


def after_vocab(args: argparse.Namespace) -> str:
    """Return the command that makes a lexicon of the same text."""
    segmenter = [] if args.segmenter == SEGMENTERS[0] else ["--segmenter", args.segmenter]
    made_with = ["--vocab", args.output, *segmenter]
    return _command(PROGRAM, "lexicon", *_text_options(args), *made_with, "--output", _free(args.output, "lexicon.tsv"))


def after_lexicon(args: argparse.Namespace) -> str:
    """Return the command that makes a corpus of the same text."""
    made_with = ["--vocab", args.vocab, "--lexicon", args.output]
    return _command(PROGRAM, "corpus", *_text_options(args), *made_with, "--output", _free(args.output, "corpus"))


def after_corpus(args: argparse.Namespace) -> str:
    """Return the command that trains on the corpus; for a shard, the command that joins the shards."""
    if args.shard:
        num_shards = args.shard[1]
        joined = _command("--output", _free(args.output, "corpus"))
        return f"{_command(PROGRAM, 'join', '--input')} SHARD_1 ... SHARD_{num_shards} {joined}"
    return training_command(args.output, args.vocab)


def training_command(path: Path, vocab: Path | None = None) -> str:
    """Return the command that trains on a corpus; `vocab` is the vocabulary with which it was made, if known.

    A corpus called held_out is used for evaluation, and the corpus beside it for training.
    """
    if path.name == HELD_OUT:
        corpus, held_out = path.with_name("corpus"), path
    else:
        corpus, held_out = path, path.with_name(HELD_OUT)
    has_held_out = (held_out / CORPUS_INFO).is_file() and _are_alike(corpus, held_out)
    paths = ["--paths.corpus", corpus, "--paths.held_out", held_out if has_held_out else "null"]
    config, start = CHINESE_CONFIG if _is_chinese(Corpus(path)) else CONFIG, []
    if vocab and any((vocab.parent / name).is_file() for name in ("config.json", "ernie_config.json")):
        config, start = BERT_CONFIG, ["--paths.start", vocab.parent]
    return _command(PROGRAM, "pretrain", config, *start, *paths, "--paths.output", _free(path, "run"))


def _are_alike(corpus: Path, held_out: Path) -> bool:
    """Return whether two corpora have the same vocabulary and lexicon, or the first one does not exist yet."""
    if not (corpus / CORPUS_INFO).is_file():
        return True
    try:
        one, other = CorpusInfo.load(corpus), CorpusInfo.load(held_out)
    except InputError:
        return False
    return (one.vocabulary, one.lexicon) == (other.vocabulary, other.lexicon)


def _is_chinese(corpus: Corpus) -> bool:
    """Return whether more than half of a corpus's tokens contain Han characters."""
    han = [any(map(is_han, token)) for token in corpus.vocabulary.tokens]
    return bool(2 * corpus.token_counts[han].sum() > corpus.token_counts.sum())


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
