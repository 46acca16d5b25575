"""Tiny pre-training runs: their options, how to start them, and what they logged."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ernie_gram.run.run_log import Record, read_log
from tests.support.commands import python
from tests.support.objectives import as_options

TINY = [
    "--model.hidden_size=32",
    "--model.num_hidden_layers=2",
    "--model.num_attention_heads=4",
    "--model.out_emb_size=16",
    "--model.max_position_embeddings=32",
    "--data.max_seq_len=32",
    "--data.batch_size=8",
    "--optimizer.learning_rate=3e-3",
    "--optimizer.warmup_steps=2",
    "--trainer.log_every=1",
    "--trainer.visualdl=false",
    # The quickest objective to build; tests that are about the others ask for them, see objectives.py.
    *as_options("explicit"),
]

NO_DROPOUT = ["--model.hidden_dropout_prob=0", "--model.attention_probs_dropout_prob=0"]


def options(built: Path, output: Path, *more: str) -> list[str]:
    paths = [f"--paths.corpus={built / 'corpus'}", f"--paths.held_out={built / 'held_out'}", f"--paths.output={output}"]
    return [*TINY, *paths, *more]


def pretrain(built: Path, output: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return python("-m", "ernie_gram.pretrain", *options(built, output, *more))


def train_losses(output: Path) -> list[tuple[int, float, float]]:
    records = [record for record in read_log(output) if record["kind"] == "train"]
    return [(record["step"], record["loss"], record["grad_norm"]) for record in records]


def evaluations(output: Path) -> list[Record]:
    return [record for record in read_log(output) if record["kind"] == "eval"]
