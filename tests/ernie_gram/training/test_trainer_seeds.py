"""Random numbers of a training: what their seeds depend on. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from ernie_gram.distributed.device import World
from ernie_gram.training import trainer as training

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
    rest = {"metrics_explained": "", "evaluators": (lambda *_: {},), "selection": None, "learning_rate": float}
    trainer.job = SimpleNamespace(seed=seed, resume_from=None, start_values=(), **rest)
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


def test_parameters_are_drawn_with_the_seed_of_the_run(seeds: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "copy_from_first_rank", lambda *_: None)
    for run in RUNS:
        trainer_at(*run)._initialise()
    assert seeds == [seed for seed, _, _ in RUNS]
