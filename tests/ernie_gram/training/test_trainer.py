"""The training loop: training, evaluating, saving, resuming, start values, and stopping when values are not finite.

Most tests use a toy job, which shows that the loop does not depend on pre-training. Those of seeds compute nothing.
"""

from __future__ import annotations

import dataclasses
import shutil
import sys
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import paddle
import pytest

import ernie_gram
from ernie_gram.distributed.device import World
from ernie_gram.distributed.processor import processor_name, read_cpuinfo
from ernie_gram.run import checkpoint
from ernie_gram.run.run_log import METERS, STARTS, read_json_lines, read_log
from ernie_gram.training import trainer as training
from ernie_gram.training.config import TrainerConfig
from ernie_gram.training.meters import Meters
from ernie_gram.training.step_values import (
    add_loss_sums,
    add_step_values,
    not_finite,
    read_step_values,
    take_mean_losses,
)
from reader.errors import InputError
from reader.system.installation import commit
from tests.support.runs import FINISHED, pretrain
from tests.support.static_programs import fresh_program
from tests.support.toy_classifier import SETTINGS

BODY, HEAD = ["body_fc.b_0", "body_fc.w_0"], ["head_fc.b_0", "head_fc.w_0"]


def records(folder: Path) -> list[dict[str, object]]:
    """Return the log of a run without its speed and its memory."""
    return [{key: value for key, value in record.items() if key not in METERS} for record in read_log(folder)]


def test_the_toy_job_learns_is_evaluated_and_is_saved_and_goes_back(train: Callable[..., str], tmp_path: Path) -> None:
    """Going back from damaged checkpoints removes them and partial ones."""
    train(tmp_path)
    accuracies = [record["accuracy"] for record in read_log(tmp_path) if record["kind"] == "eval"]
    assert len(accuracies) == 3
    assert accuracies[-1] > 0.85 > 0.7 > accuracies[0]  # 65 % of the points lie outside the circle
    assert [path.name for path in checkpoint.checkpoints(tmp_path)] == ["step_40", "step_80", "step_120"]
    assert sorted(checkpoint.load_model(tmp_path / "step_120")) == BODY + HEAD
    partial = [tmp_path / ".step_160.partial", tmp_path / ".best.partial"]
    for folder in partial:
        folder.mkdir()
    for step in (80, 120):
        (tmp_path / f"step_{step}" / checkpoint.MODEL).write_bytes(b"damaged")
    train(tmp_path, steps=41, log_every=1)
    assert [path.name for path in checkpoint.checkpoints(tmp_path)] == ["step_40", "step_41"]
    assert not any(folder.exists() for folder in partial)
    assert {record["step"] for record in read_log(tmp_path)} == {0, 10, 20, 30, 40, 41}


def test_the_first_step_counts_in_a_rate_only_if_it_is_the_only_one(
    train: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a run without warm-up, which is evaluated before its first step."""
    counted, add = list[None](), Meters.add
    monkeypatch.setattr(Meters, "add", lambda *given: (counted.append(None), add(*given)))
    for log_every, steps in ((4, 1), (1, 2)):
        counted.clear()
        optimizer = dataclasses.replace(SETTINGS, warmup_steps=0)
        train(tmp_path / str(log_every), steps=2, log_every=log_every, optimizer=optimizer)
        assert len(counted) == steps
    log = read_log(tmp_path / "1")
    assert [record["step"] for record in log if record["kind"] == "eval"] == [0, 2]
    rates = [record["learning_rate"] for record in log if record["kind"] == "train"]
    assert rates == pytest.approx([SETTINGS.learning_rate, SETTINGS.learning_rate * 119 / 120], rel=1e-4)


def test_a_logged_loss_is_the_mean_of_the_steps_since_the_last_line(train: Callable[..., str], tmp_path: Path) -> None:
    """Also if the run was stopped between two lines; its checkpoint has the part before it."""
    train(tmp_path / "each", steps=25, log_every=1)
    train(tmp_path / "some", steps=25, save_every=7)
    before = records(tmp_path / "some")
    logged = [record for record in before if record["kind"] == "train"]
    assert [(record["step"], record["loss_steps"]) for record in logged] == [(10, 10), (20, 10), (25, 5)]
    single = [record for record in records(tmp_path / "each") if record["kind"] == "train"]
    for part, record in zip((single[:10], single[10:20], single[20:]), logged, strict=True):
        for name in ("loss", "class"):
            assert record[name] == pytest.approx(np.mean([each[name] for each in part]), rel=1e-6)
        assert record["grad_norm"] == part[-1]["grad_norm"]
    for step in (14, 21, 25):
        shutil.rmtree(tmp_path / "some" / f"step_{step}")
    train(tmp_path / "some", steps=25, save_every=7)
    assert records(tmp_path / "some") == before


def test_every_start_of_a_run_is_recorded_with_what_it_was_made_by(
    train: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["ernie-gram pretrain", "--paths.output", "my run"])
    for last in (2, 4):
        train(tmp_path, steps=last)
    starts = read_json_lines(tmp_path / STARTS)
    assert [start["step"] for start in starts] == [0, 2]
    for start in starts:
        assert start["command"] == "ernie-gram pretrain --paths.output 'my run'"
        assert (start["version"], start["commit"]) == (ernie_gram.__version__, commit())
        assert (start["paddle"], start["device"]) == (paddle.__version__, "Place(cpu)")
        assert start["processor"] == processor_name(read_cpuinfo())
        assert datetime.now(timezone.utc) - datetime.fromisoformat(start["date"]) < timedelta(hours=1)


def test_parameters_without_start_values_are_drawn(train: Callable[..., str], tmp_path: Path) -> None:
    """The console names the parameters that are drawn and the start values that are not used."""
    train(tmp_path / "first")
    given = checkpoint.load_model(tmp_path / "first" / "step_120")
    partial = {name: given[name] for name in BODY} | {"other_fc.w_0": np.ones((2, 2), np.float32)}
    state = checkpoint.load_state(tmp_path / "first" / "step_120")
    (tmp_path / "partial").mkdir()
    source = checkpoint.save(tmp_path / "partial", dataclasses.replace(state, step=1), partial, {}, keep=1)
    console = train(tmp_path / "second", start=source, steps=1, save_every=1)
    assert f"start values: 2 of 4 parameters from {source}" in console
    assert f"not in {source}, drawn: head_fc.b_0, head_fc.w_0" in console
    assert f"in {source}, not used: other_fc.w_0" in console
    # The body moved from its start values by at most the learning rate; the head was drawn as without start values.
    train(tmp_path / "drawn", steps=1, save_every=1)
    moved, drawn = (checkpoint.load_model(tmp_path / name / "step_1") for name in ("second", "drawn"))
    for name in BODY:
        assert np.abs(moved[name] - given[name]).max() < 0.0201 < np.abs(drawn[name] - given[name]).max()
    for name in HEAD:
        assert np.abs(moved[name] - drawn[name]).max() <= 2 * 0.0201  # each run made one step at the rate 0.1 / 5
    other = checkpoint.save(source.parent, state, {"body_fc.w_0": np.ones((3, 16), np.float32)}, {}, keep=1)
    with pytest.raises(InputError, match=r"body_fc.w_0 has shape \[3, 16\], not \[2, 16\]"):
        train(tmp_path / "run", start=other)


def test_learning_rates_are_scaled_per_parameter(train: Callable[..., str], tmp_path: Path) -> None:
    """Adam's first update moves every number by about the learning rate, so the factors can be read off directly."""
    factors = {"body_fc.w_0": 0.0, "body_fc.b_0": 0.25, "head_fc.w_0": 1.0, "head_fc.b_0": 2.0}
    train(tmp_path, rate_scale=factors, steps=1, save_every=1)
    moments = checkpoint.load_optimizer(tmp_path / "step_1")
    values = checkpoint.load_model(tmp_path / "step_1")
    for name in ("body_fc.b_0", "head_fc.b_0"):  # biases start from 0
        gradient = moments[f"{name}_moment1_0"] / 0.1
        moved = 0.1 / 5 * factors[name] * np.abs(gradient) / (np.abs(gradient) + 1e-6)
        np.testing.assert_allclose(np.abs(values[name]), moved, rtol=1e-3, atol=1e-7)
    unmoved = tmp_path / "unmoved"
    train(unmoved, rate_scale=dict.fromkeys(factors, 0.0), steps=1, save_every=1)
    other = checkpoint.load_model(unmoved / "step_1")
    assert np.array_equal(other["body_fc.w_0"], values["body_fc.w_0"])
    assert not np.array_equal(other["head_fc.w_0"], values["head_fc.w_0"])


def test_resuming_repeats_an_evaluation_that_is_missing_from_the_log(
    built: Path, finished: Path, run_copy: Path
) -> None:
    lines = (run_copy / "log.jsonl").read_text().splitlines(keepends=True)
    assert '"eval"' in lines[-1]
    (run_copy / "log.jsonl").write_text("".join(lines[:-1]))
    pretrain(built, run_copy, *FINISHED).ok()
    assert read_log(run_copy) == read_log(finished)


@pytest.mark.parametrize(("log_every", "save_every", "eval_every"), [(5, 40, 40), (40, 4, 40), (40, 40, 3), (1, 4, 40)])
def test_a_step_that_is_not_finite_is_found_before_anything_is_logged_saved_or_evaluated(
    train: Callable[..., str], tmp_path: Path, log_every: int, save_every: int, eval_every: int
) -> None:
    """Step 7 reads a point that is NaN. Values are read only at multiples of the three intervals."""
    intervals = {"log_every": log_every, "save_every": save_every, "eval_every": eval_every}
    with pytest.raises(InputError, match=r"^step 7: the loss is nan, its gradient nan; stopped\. "):
        train(tmp_path, steps=40, bad_steps=[6], **intervals)
    saved = tmp_path / f"step_{6 // save_every * save_every}"
    assert checkpoint.newest_valid(tmp_path) == (saved if saved.exists() else None)
    assert max((record["step"] for record in read_log(tmp_path)), default=0) <= 6


@pytest.mark.parametrize(
    "changed",
    [
        *({"trainer": TrainerConfig(**{key: 7})} for key in ("max_steps", "log_every", "eval_every", "save_every")),
        *({"evaluated": {"held_out": "2"}}, {"identity": {"seed": 2}}, {"accumulates": True}),
        {"resume_from": Path("step_2")},
    ],
    ids=str,
)
def test_ranks_must_agree_on_all_that_decides_what_they_exchange(
    changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    monkeypatch.setattr(training, "check_agreement", lambda _, number, *__: found.append(number))
    own = {"trainer": TrainerConfig(), "evaluated": {"held_out": "1"}, "identity": {"seed": 1}, "resume_from": None}
    for values in (own, dict(own), own | changed):
        trainer: Any = object.__new__(training.Trainer)
        trainer.executor, trainer.world = None, None
        trainer.job = SimpleNamespace(**{"trainer": TrainerConfig(), **values})
        trainer.updater = SimpleNamespace(accumulates=values.get("accumulates", False))
        trainer._check_agreement()
    assert found[0] == found[1] != found[2]


def test_ranks_exchange_numbers_while_the_first_one_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exchange over gloo fails if a rank is 30 seconds late, and to write a large checkpoint takes longer."""
    monkeypatch.setattr(training, "POLL_SECONDS", 0.01)
    asked, enough, done = list[float](), threading.Event(), list[bool]()

    def of_first_rank(number: float) -> float:
        asked.append(number)
        if len(asked) == 3:
            enough.set()
        return number

    for rank in (0, 1):
        asked.clear()
        waiting = SimpleNamespace(world=World(rank, 2, paddle.CPUPlace()), _of_first_rank=of_first_rank)
        training.Trainer._on_first_rank(waiting, lambda: lambda: done.append(enough.wait(20)))  # type: ignore[arg-type]
        assert done == [True]
        assert asked == ([1] * (len(asked) - 1) + [0] if rank == 0 else [0])

    def fail() -> None:
        raise InputError("damaged")

    first = SimpleNamespace(world=World(0, 2, paddle.CPUPlace()), _of_first_rank=of_first_rank)
    with pytest.raises(InputError, match="damaged"):
        training.Trainer._on_first_rank(first, lambda: fail)  # type: ignore[arg-type]


def test_the_values_of_the_first_step_that_is_not_finite_are_kept() -> None:
    """Also if only its gradient is not finite, and later steps are."""
    with fresh_program() as (executor, main, startup):
        values = {name: paddle.static.data(name, [], "float32") for name in ("loss", "grad_norm")}
        add_step_values(values, not_finite(*values.values()))
        executor.run(startup)
        found = []
        for loss, norm in ((0.5, 1.0), (0.25, 2.0), (0.125, np.inf), (0.5, 3.0), (np.nan, np.nan)):
            executor.run(main, feed={"loss": np.float32(loss), "grad_norm": np.float32(norm)}, fetch_list=[])
            last, steps = read_step_values(values)
            found.append((*last.values(), steps))
    assert found == [(0.5, 1.0, 1), (0.25, 2.0, 2), *[(0.125, np.inf, 3)] * 3]


def test_steps_whose_losses_are_not_finite_are_not_part_of_the_mean() -> None:
    with fresh_program() as (executor, main, startup):
        add_loss_sums(paddle.static.data("losses", [2], "float32"))
        executor.run(startup)
        found = []
        for steps in ([(1.0, 0.5), (np.nan, 0.5), (4.0, 1.0)], [(0.1, 0.2)], [(1.0, np.inf)]):
            for losses in steps:
                executor.run(main, feed={"losses": np.array(losses, np.float32)}, fetch_list=[])
            found.append(take_mean_losses(["loss", "term", "grad_norm"]))
    one = {"loss": float(np.float32(0.1)), "term": float(np.float32(0.2)), "loss_steps": 1}
    assert found == [{"loss": 2.5, "term": 0.75, "loss_steps": 2}, one, {"loss_steps": 0}]


# Seed, step and rank.
RUNS = list(product((1, 2), (3, 4), (0, 1)))


@pytest.fixture
def seeds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds that are set, in order."""
    found: list[int] = []
    monkeypatch.setattr(training.paddle, "seed", found.append)
    monkeypatch.setattr(training, "set_learning_rate", lambda _: None)
    return found


def trainer_at(seed: int, step: int, rank: int) -> Any:
    def update(_: object, micro_batches: list[Any], seed: Callable[..., None]) -> None:
        for index in range(len(micro_batches)):
            seed(index)

    trainer: Any = object.__new__(training.Trainer)
    trainer.step, trainer.world, trainer.executor = step, World(rank, 2, None), None
    rest = {"evaluator": lambda *_: {}, "selection": None, "learning_rate": float}
    trainer.job = SimpleNamespace(seed=seed, resume_from=None, start_values=None, **rest)
    trainer.updater = SimpleNamespace(step=update, initialise=lambda _: None, parameters=[])
    trainer.log, trainer._values, trainer._stop = MagicMock(evaluated={step}), dict, MagicMock()
    trainer._end_if_asked = lambda _: None
    return trainer


def test_every_step_rank_and_micro_batch_has_a_seed_of_its_own_and_repeats_it(seeds: list[int]) -> None:
    for run in RUNS:
        trainer_at(*run)._update([{}, {}])
    assert len(set(seeds)) == len(seeds) == 2 * len(RUNS)
    trainer_at(*RUNS[0])._update([{}, {}])
    assert seeds[-2:] == seeds[:2]


def test_the_evaluations_of_a_run_have_one_seed_for_each_rank(seeds: list[int]) -> None:
    for run in RUNS:
        trainer_at(*run).evaluate()
    of_run = {(seed, rank): number for (seed, _, rank), number in zip(RUNS, seeds, strict=True)}
    assert [of_run[seed, rank] for seed, _, rank in RUNS] == seeds
    assert len(set(seeds)) == 4
