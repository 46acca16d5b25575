"""Whole pre-training runs: several processes, killed and resumed runs, held-out perplexity, and precision."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tqdm import tqdm

from ernie_gram.run import checkpoint
from ernie_gram.run.run_log import last_evaluation, read_log
from tests.support.bfloat16 import needs_bfloat16
from tests.support.commands import ERNIE_GRAM, in_ranks, kill_when, ranks_with, started, wait_for
from tests.support.objectives import as_options
from tests.support.runs import NO_DROPOUT, evaluations, options, pretrain, train_losses, trained_steps


def test_a_killed_run_resumes_to_the_same_result(built: Path, tmp_path: Path) -> None:
    """The run uses every source of random numbers: masks, dropout, and the generator's samples."""
    finished, output = tmp_path / "uninterrupted", tmp_path / "run"
    more = ["--trainer.max_steps=12", "--trainer.save_every=2", "--trainer.eval_every=6", "--trainer.eval_sequences=24"]
    more += ["--model.num_hidden_layers=1", *as_options("full")]
    pretrain(built, finished, *more).ok()
    command = [*ERNIE_GRAM, "pretrain", *options(built, output, *more)]
    kill_when(command, lambda: any(record["step"] >= 5 for record in read_log(output)))
    saved = checkpoint.newest_valid(output)
    assert saved is not None
    resumed = pretrain(built, output, *more).ok()
    assert f"resumes from {saved}" in resumed.stdout
    assert trained_steps(resumed.stdout)[0] == int(saved.name.removeprefix("step_")) + 1
    # Bit for bit, with dropout and evaluations, and without repeated records.
    assert train_losses(output) == train_losses(finished)
    assert evaluations(output) == evaluations(finished)
    found, expected = (checkpoint.load_model(path / "step_12") for path in (output, finished))
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


def test_1_2_and_1_processes_in_turn_give_the_losses_of_one_undisturbed_process(built: Path, tmp_path: Path) -> None:
    """The first process gets SIGTERM, then rank 1 alone of two gets it, then rank 0 of two is killed."""
    finished, output, log = tmp_path / "undisturbed", tmp_path / "run", tmp_path / "log"
    more = ["--trainer.max_steps=150", "--trainer.save_every=50", "--trainer.eval_every=150", *NO_DROPOUT]
    pretrain(built, finished, *more).ok()
    alone, two, mark = [*ERNIE_GRAM, "pretrain"], in_ranks(log), {"RUN_OF_THIS_TEST": str(output)}

    def disturb(command: list[str], step: int, rank: int, number: int) -> tuple[int, str]:
        """Send a signal to one rank as soon as `step` is logged; return the status of the job and its last line."""
        with started(*command, *options(built, output, *more), stderr=subprocess.STDOUT, **mark) as process:
            assert wait_for(lambda: process.poll() is not None or any(r["step"] >= step for r in read_log(output)), 280)
            assert process.poll() is None
            os.kill(ranks_with(**mark).get(rank, process.pid), number)
            console = process.communicate(timeout=200)[0]
            assert ranks_with(**mark) == {}, "a rank has outlived its launcher"
        return process.returncode, console.splitlines()[-1]

    def saved_step() -> int:
        found = checkpoint.newest_valid(output)
        return int(found.name[5:]) if found else 0

    assert disturb(alone, 3, 0, signal.SIGTERM)[0] == 143
    first = saved_step()
    assert 3 <= first == read_log(output)[-1]["step"]
    status, line = disturb(two, first + 2, 1, signal.SIGTERM)
    assert (status, line.split(" (")[0]) == (143, "error: rank 0")
    second = saved_step()
    assert first + 2 <= second == read_log(output)[-1]["step"]
    status, line = disturb(two, second + 2, 0, signal.SIGKILL)
    assert status == 137
    assert re.match(r"error: rank 0 \(process \d+\) was killed by SIGKILL", line)
    assert saved_step() >= second
    pretrain(built, output, *more).ok()
    np.testing.assert_allclose(np.array(train_losses(output)), np.array(train_losses(finished)), rtol=1e-4)
    (_, last), (_, expected) = evaluations(output), evaluations(finished)
    assert last.pop("kind") == expected.pop("kind")
    assert last == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("objective", "start"), [("explicit", "frequency"), ("contiguous", "zero")])
def test_training_lowers_the_held_out_perplexity(
    built: Path, tmp_path: Path, objective: str, start: str, bars: dict[str, tqdm[Any]]
) -> None:
    # At 32 tokens, a quarter of a sequence is kept free for hidden tokens; so it takes more steps to see as many units.
    more = ["--trainer.max_steps=160", "--trainer.eval_every=80", "--trainer.log_every=80", "--data.batch_size=32"]
    more.append("--model.num_hidden_layers=1")
    pretrain(built, tmp_path / "run", *more, *as_options(objective), f"--objective.output_bias={start}").ok()
    first, middle, last = (record["perplexity"] for record in evaluations(tmp_path / "run"))
    by_frequency = evaluations(tmp_path / "run")[0]["frequency_perplexity"]
    assert last < middle < first
    if start == "zero":
        assert first > 1000  # about the number of units
    else:
        assert first == pytest.approx(by_frequency, rel=0.1)
        assert last < 0.9 * by_frequency
    assert (bars["training"].n, bars["training"].total) == (160, 160)
    assert bars["evaluating"].n == bars["evaluating"].total


# In bfloat16. Products of the other tests' models are too small to be rounded.
LARGER = ["--model.hidden_size=72", "--model.num_attention_heads=2", "--model.out_emb_size=40", *as_options("cnp")]
STEPS = ["--trainer.max_steps=8", "--optimizer.decay_steps=8", "--trainer.eval_sequences=80"]


@needs_bfloat16
def test_factors_are_rounded_and_losses_stay_close_to_float32(built: Path, tmp_path: Path) -> None:
    half, single = tmp_path / "half", tmp_path / "single"
    pretrain(built, half, *LARGER, *STEPS, *NO_DROPOUT, "--optimizer.precision=bfloat16").ok()
    pretrain(built, single, *LARGER, *STEPS, *NO_DROPOUT).ok()
    losses, expected = (np.array([loss for _, loss, _ in train_losses(each)]) for each in (half, single))
    assert not np.array_equal(losses, expected)
    assert (np.abs(losses / expected - 1) < 0.01).all()
    perplexities = [last_evaluation(each)["perplexity"] for each in (half, single)]
    assert perplexities[0] == pytest.approx(perplexities[1], rel=0.05)
