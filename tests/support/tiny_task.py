"""A task of one's own that a tiny model learns in seconds, and functions that fine-tune on it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ernie_gram.config.loading import load_config
from ernie_gram.formats.registry import write_model
from reader.tokenization.wordpiece import WordPieceVocabulary
from tasks.training.config import FinetuneConfig
from tasks.training.prepare import Finetuning, prepare
from tests.support.commands import Done
from tests.support.model_folders import BERT, given_bert

LETTERS = "abcdefgh"
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *"0123456789"]
TASK = """\
kind: classification
language: en
layout: tsv
columns: {text_a: text, label: label}
files: {train: train.tsv, dev: dev.tsv}
metric: accuracy
"""
TRAIN_ROWS, DEV_ROWS = 61, 23
SETTINGS = [
    "--input.max_seq_len=16",
    "--optimizer.learning_rate=1e-2",
    "--optimizer.batch_size=8",
    "--optimizer.epochs=4",
    "--optimizer.layer_decay=0.9",
    "--evaluation.batch_size=4",
    "--head.sentence_output=cls",
    "--head.dropout=0",
    "--dropout.hidden=0",
    "--dropout.attention=0",
    "--trainer.log_every=4",
]


def make_task(folder: Path) -> None:
    """Write model/ and data/ with task.yaml, train.tsv and dev.tsv: see `rows`."""
    config = replace(BERT, vocab_size=len(TOKENS))
    write_model(given_bert(WordPieceVocabulary(TOKENS, True, "tiny"), config=config), folder / "model", "ernie_gram")
    write_data(folder / "data")


def write_data(folder: Path) -> None:
    """Write task.yaml, train.tsv and dev.tsv."""
    folder.mkdir()
    (folder / "task.yaml").write_text(TASK)
    for seed, (name, count) in enumerate((("train", TRAIN_ROWS), ("dev", DEV_ROWS))):
        lines = (f"{text}\t{label}\n" for text, label in rows(count, seed))
        (folder / f"{name}.tsv").write_text("text\tlabel\n" + "".join(lines))


def rows(count: int, seed: int) -> list[tuple[str, int]]:
    """Return texts of 3 to 10 letters, and their labels: 1 if most letters are of the first half of LETTERS."""
    random = np.random.default_rng(seed)
    texts = []
    for i in range(count):
        label = int(i % 5 < 2)
        probabilities = np.where((np.arange(8) < 4) == bool(label), 0.2, 0.05)
        texts.append((" ".join(random.choice(list(LETTERS), random.integers(3, 11), p=probabilities)), label))
    return texts


def options(task: Path, output: Path, *more: str) -> list[str]:
    """Return the options of a fine-tuning in a folder made by `make_task`."""
    paths = [f"--paths.model={task / 'model'}", f"--paths.data={task / 'data'}", f"--paths.output={output}"]
    return [f"--task={task / 'data' / 'task.yaml'}", *SETTINGS, *paths, *more]


def checked(task: Path, output: Path, *more: str) -> Finetuning:
    """Return a fine-tuning that was checked, and not started."""
    return prepare(load_config(FinetuneConfig, options(task, output, *more))[0])


def finetune(task: Path, output: Path, *more: str) -> Done:
    """Run `ernie-gram finetune` in this process."""
    from tasks.finetune import main
    from tests.support.static_programs import call_in_scope

    return call_in_scope(main, *options(task, output, *more))
