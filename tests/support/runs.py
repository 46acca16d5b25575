"""Tiny pre-training runs: their options, functions that start them, and functions that read their logs."""

from __future__ import annotations

import re
from pathlib import Path

from ernie_gram.run.run_log import Record, read_log
from tests.support.commands import Done
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
    # The objective whose program is built fastest. Tests of other objectives append them, see objectives.py.
    *as_options("explicit"),
]

NO_DROPOUT = ["--model.hidden_dropout_prob=0", "--model.attention_probs_dropout_prob=0"]
# The options of the fixture `finished`, without its folders.
FINISHED = ["--trainer.max_steps=24", "--trainer.save_every=4", "--trainer.eval_every=12"]


def options(built: Path, output: Path, *more: str) -> list[str]:
    """Return the options of a tiny run on the corpora of the fixture `built`."""
    paths = [f"--paths.corpus={built / 'corpus'}", f"--paths.held_out={built / 'held_out'}", f"--paths.output={output}"]
    return [*TINY, *paths, *more]


def pretrain(built: Path, output: Path, *more: str) -> Done:
    """Run `ernie-gram pretrain` in this process, because a new process would load Paddle for seconds.

    Tests of kills, signals and several processes start new processes instead.
    """
    return pretrain_with(*options(built, output, *more))


def pretrain_with(*arguments: str) -> Done:
    """Run `ernie-gram pretrain` in this process with only these arguments."""
    from ernie_gram.pretrain import main
    from tests.support.static_programs import call_in_scope

    return call_in_scope(main, *arguments)


def train_losses(output: Path) -> list[tuple[int, float, float]]:
    """Return (step, loss, gradient norm) of every logged step."""
    records = [record for record in read_log(output) if record["kind"] == "train"]
    return [(record["step"], record["loss"], record["grad_norm"]) for record in records]


def trained_steps(console: str) -> list[int]:
    """Return the training steps that a run has shown; a resumed run shows none of those before its checkpoint."""
    return [int(step) for step in re.findall(r"^train step +(\d+)/", console, re.MULTILINE)]


def evaluations(output: Path) -> list[Record]:
    """Return the logged evaluations."""
    return [record for record in read_log(output) if record["kind"] == "eval"]
