"""Whole pre-training runs: several processes, killed and resumed runs, held-out perplexity, and precision."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from ernie_gram.run import checkpoint
from ernie_gram.run.run_log import read_log
from tests.support.commands import ROOT
from tests.support.launched import launch
from tests.support.objectives import as_options
from tests.support.runs import NO_DROPOUT, evaluations, options, pretrain, train_losses


@pytest.mark.parametrize("objective", ["contiguous", "full"])
def test_two_processes_give_the_same_result_as_one(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, objective: str
) -> None:
    # The batch size is odd, so the ranks get shares of different sizes.
    more = ["--trainer.max_steps=20", "--data.batch_size=7", *as_options(objective), *NO_DROPOUT]
    with monkeypatch.context() as patched:
        patched.setattr("ernie_gram.pretraining.chunked_softmax._sample", lambda p, blocks: p.argmax(-1))
        assert pretrain(built, tmp_path / "run1", *more).returncode == 0
    alone = checkpoint.load_model(tmp_path / "run1" / "step_20")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DUMP": str(tmp_path)}
    command = launch("tests/support/train_and_dump.py", tmp_path / "log", *options(built, tmp_path / "run2", *more))
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr + done.stdout
    first, second = (np.load(tmp_path / name) for name in ("0.npz", "1.npz"))
    assert set(first.files) == set(alone)
    for name in alone:
        assert np.array_equal(first[name], second[name]), name
        assert np.abs(first[name] - alone[name]).max() < 1e-5, name
    moved = min(np.abs(alone[name]).max() for name in alone if name.endswith("ffn_fc_0.b_0"))
    assert moved > 1e-2  # these biases start at 0, so the parameters did change
    for one, two in zip(evaluations(tmp_path / "run1"), evaluations(tmp_path / "run2"), strict=True):
        assert one.pop("kind") == two.pop("kind") == "eval"
        assert one == pytest.approx(two, rel=1e-4)


def start_and_kill(command: list[str], environment: dict[str, str], output: Path, step: int) -> None:
    """Start a run, and kill all its processes as soon as it has logged `step` or a later step."""
    process = subprocess.Popen(command, env=environment, cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if any(record["step"] >= step for record in read_log(output)):
            break
        time.sleep(0.005)
    assert process.poll() is None, "the run ended before it could be killed"
    # The launcher starts its children in new sessions, so they are found by the output folder in their command line.
    pids = subprocess.run(["pgrep", "-f", str(output)], capture_output=True, text=True, check=False).stdout.split()
    for pid in {*map(int, pids), process.pid}:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def test_a_killed_run_resumes_to_the_same_result(built: Path, tmp_path: Path) -> None:
    """The run uses every source of random numbers: masks, dropout, and the generator's samples."""
    finished, output = tmp_path / "uninterrupted", tmp_path / "run"
    more = ["--trainer.max_steps=24", "--trainer.save_every=4", "--trainer.eval_every=12", *as_options("full")]
    assert pretrain(built, finished, *more).returncode == 0
    command = [sys.executable, "-m", "ernie_gram.pretrain", *options(built, output, *more)]
    start_and_kill(command, {**os.environ, "PYTHONPATH": str(ROOT)}, output, step=10)
    saved = checkpoint.newest_valid(output)
    assert saved is not None
    resumed = pretrain(built, output, *more)
    assert resumed.returncode == 0, resumed.stderr
    assert f"resumes from {saved}" in resumed.stdout
    # Bit for bit, with dropout and evaluations, and without repeated records.
    assert train_losses(output) == train_losses(finished)
    assert evaluations(output) == evaluations(finished)
    found, expected = (checkpoint.load_model(path / "step_24") for path in (output, finished))
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


def test_a_killed_run_of_two_processes_resumes_to_the_same_losses(built: Path, tmp_path: Path) -> None:
    more = ["--trainer.max_steps=12", "--trainer.save_every=2"]
    losses = []
    for name in ("uninterrupted", "killed"):
        output = tmp_path / name
        command = launch("ernie_gram/pretrain.py", tmp_path / "log", *options(built, output, *more))
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        if name == "killed":
            start_and_kill(command, environment, output, step=5)
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr + done.stdout
        losses.append(train_losses(output))
    assert len(losses[0]) == 12
    np.testing.assert_allclose(np.array(losses[1]), np.array(losses[0]), rtol=1e-5)


@pytest.mark.parametrize(
    ("objective", "start"),
    [("explicit", "frequency"), ("explicit", "zero"), ("contiguous", "frequency")],
)
def test_training_lowers_the_held_out_perplexity(built: Path, tmp_path: Path, objective: str, start: str) -> None:
    # At 32 tokens, a quarter of a sequence is kept free for hidden tokens; so it takes more steps to see as many units.
    more = ["--trainer.max_steps=120", "--trainer.eval_every=60", "--trainer.log_every=60", "--data.batch_size=32"]
    done = pretrain(built, tmp_path / "run", *more, *as_options(objective), f"--objective.output_bias={start}")
    assert done.returncode == 0, done.stderr
    first, middle, last = (record["perplexity"] for record in evaluations(tmp_path / "run"))
    by_frequency = evaluations(tmp_path / "run")[0]["frequency_perplexity"]
    assert last < middle < first
    if start == "zero":
        assert first > 1000  # about the number of units
    elif objective != "contiguous":
        assert first == pytest.approx(by_frequency, rel=0.1)
        assert last < 0.9 * by_frequency


def test_bfloat16_losses_are_within_2_percent_of_float32(built: Path, tmp_path: Path) -> None:
    losses = []
    for precision in ("float32", "bfloat16"):
        output = tmp_path / precision
        # At this learning rate rounding errors do not grow from step to step, so the arithmetic itself is compared.
        more = ["--trainer.max_steps=200", "--trainer.eval_every=1000", "--optimizer.learning_rate=1e-3"]
        more += [f"--optimizer.precision={precision}", *as_options("cnp"), "--objective.output_bias=zero"]
        done = pretrain(built, output, *more, *NO_DROPOUT)
        assert done.returncode == 0, done.stderr
        losses.append([loss for _, loss, _ in train_losses(output)])
    single, half = np.array(losses)
    assert single[-20:].mean() < 0.9 * single[:5].mean()  # training had an effect
    assert not np.array_equal(single, half)
    assert (np.abs(half / single - 1) < 0.02).all()
