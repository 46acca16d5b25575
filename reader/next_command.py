"""The command that follows each command of the reader: vocab -> lexicon -> corpus -> training."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from reader.corpus.memmap import Corpus
from reader.text.input_files import CORPUS_INFO
from reader.tokenization.basic_tokenizer import is_han
from reader.tokenization.chinese_segmentation import SEGMENTERS

CONFIG, CHINESE_CONFIG = "conf/pretrain/small_en.yaml", "conf/pretrain/small_zh.yaml"
# For a corpus with the vocabulary of a BERT, which this token identifies. "BERT" stands for its folder, if unknown.
BERT_CONFIG, BERT_TOKEN, BERT = "conf/pretrain/from_bert_en.yaml", "[unused1]", Path("BERT")
PROGRAM = "ernie-gram"
# The name of the corpus for evaluation, as in README.md.
HELD_OUT = "held_out"


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
    return _training(args.output, args.vocab)


def after_join(args: argparse.Namespace) -> str:
    """Return the command that trains on the corpus."""
    return _training(args.output)


def after_check(args: argparse.Namespace) -> str:
    """Return the command that trains on the first of the corpora."""
    return _training(args.corpus[0])


def after_inspect(args: argparse.Namespace) -> str | None:
    """Return the command that makes a corpus of the text that was cut; None without a text."""
    if not args.input:
        return None
    made_with = ["--vocab", args.vocab, "--lexicon", args.lexicon]
    return _command(PROGRAM, "corpus", *_text_options(args), *made_with, "--output", _free(args.lexicon, "corpus"))


def _training(path: Path, vocab: Path | None = None) -> str:
    """Return the command that trains on a corpus, which was made with the vocabulary in the file `vocab`.

    A corpus called held_out is the one for evaluation, and the corpus beside it is the one for training.
    """
    if path.name == HELD_OUT:
        corpus, held_out = path.with_name("corpus"), path
    else:
        corpus, held_out = path, path.with_name(HELD_OUT)
    has_held_out = (held_out / CORPUS_INFO).is_file()
    paths = ["--paths.corpus", corpus, "--paths.held_out", held_out if has_held_out else "null"]
    model = _model_of(vocab, Corpus(path))
    config = BERT_CONFIG if model else CHINESE_CONFIG if _is_chinese(Corpus(path)) else CONFIG
    start = ["--paths.start", model] if model else []
    return _command(PROGRAM, "pretrain", config, *start, *paths, "--paths.output", _free(path, "run"))


def _model_of(vocab: Path | None, corpus: Corpus) -> Path | None:
    """Return the folder of the model that the vocabulary of a corpus belongs to, None if it seems to be a new one."""
    if vocab and any((vocab.parent / name).is_file() for name in ("config.json", "ernie_config.json")):
        return vocab.parent
    return BERT if BERT_TOKEN in corpus.vocabulary.ids else None


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
