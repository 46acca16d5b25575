"""The share of the peak that a step of a shorter model reaches."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import MagicMock

import pytest

from ernie_gram.distributed.world import start_world
from ernie_gram.planning import trial_step
from ernie_gram.planning.trial_step import measured_utilisation, shortened
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.catalog import recomputed_flops, step_flops
from ernie_gram.training.config import OptimizerConfig, TrainerConfig
from tests.support.further_cases import only
from tests.support.small_model import MODEL, RUNGS, config_of

SIZES = CorpusSizes(120, 36)
SHAPE = BatchShape(6, 20, 3.4, 5, 4.6)
RECOMPUTE = TrainerConfig(recompute=True)
CASES = {
    **{rung: config_of(rung) for rung in RUNGS},
    "both, own tables, recompute": replace(config_of("both", share_embeddings=False), trainer=RECOMPUTE),
}


def shape_of(case: str) -> BatchShape:
    return SHAPE if case.startswith(("both", "cnp")) else replace(SHAPE, queries=0, fine=0.0)


# A batch for "both" has the fields of all explicit objectives.
@pytest.mark.parametrize("case", only(["contiguous", "both", "both, own tables, recompute"], CASES))
def test_the_time_is_that_of_the_fastest_step_of_every_objective(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config, shape = CASES[case], shape_of(case)
    steps: list[float] = []

    class Clock:
        """Counts seconds; the steps after the first ones take 3, 2, 1 and 3 of them."""

        def perf_counter(self) -> float:
            steps.append(next(ticks))
            return sum(steps)

    ticks = iter([100.0, 3.0, 100.0, 2.0, 100.0, 1.0, 100.0, 3.0])
    monkeypatch.setattr(trial_step, "time", Clock())
    batch = trial_step.random_batch(config, SIZES, shape)
    assert trial_step._step_seconds(config, SIZES, batch, start_world("cpu")) == 1.0
    assert len(steps) == 2 * trial_step.STEPS


def test_the_step_skips_updates_as_training_does(monkeypatch: pytest.MonkeyPatch) -> None:
    built = MagicMock()
    monkeypatch.setattr(trial_step, "build_training", built)
    for not_finite, skips in (("stop", False), ("skip", True)):
        config = config_of("explicit")
        config = replace(config, trainer=replace(config.trainer, not_finite=not_finite))
        trial_step.step_program(config, SIZES, start_world("cpu"))
        assert built.call_args.kwargs["skips"] is skips


def test_the_step_in_float16_is_that_of_training_with_a_scaled_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    built = MagicMock()
    monkeypatch.setattr(trial_step, "build_training", built)
    for precision, skips in (("float32", False), ("float16", True)):
        config = replace(config_of("explicit"), optimizer=OptimizerConfig(precision=precision))
        trial_step.step_program(config, SIZES, start_world("cpu"))
        assert built.call_args.kwargs["skips"] is skips


@pytest.mark.parametrize("changes", [{"queries": 0, "fine": 0.0}, {"predicted": 0.2}, {"slots": 100}])
def test_unusual_shapes_are_measured(changes: dict[str, float]) -> None:
    """Short sequences have no query rows; with a start model they may be longer than the position table."""
    config = config_of("both", replace(MODEL, max_ngram_tokens=1))
    share = measured_utilisation(config, SIZES, replace(SHAPE, **changes), 1e12, start_world("cpu"))  # type: ignore[arg-type]
    assert 0 < share < 1


@pytest.mark.parametrize("case", CASES)
def test_the_share_is_operations_by_time_and_peak(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config, shape = CASES[case], shape_of(case)
    monkeypatch.setattr(trial_step, "_step_seconds", lambda *arguments: 0.5)
    flops = sum(step_flops(config, SIZES, shape).values()) + recomputed_flops(config, shape)
    peak = 10 * flops
    share = measured_utilisation(config, SIZES, shape, peak, start_world("cpu"))
    assert share == pytest.approx(1 / 5)


@pytest.mark.parametrize("case", CASES)
def test_a_shorter_model_keeps_the_shares_of_layers_and_classes(case: str) -> None:
    config, shape = CASES[case], shape_of(case)
    long = replace(config, model=replace(config.model, num_hidden_layers=12, vocab_size=200))
    short, sizes = shortened(long, SIZES)
    assert (short.model.num_hidden_layers, short.model.vocab_size, sizes.tokens, sizes.ngrams) == (4, None, 40, 12)
    whole, part = (
        sum(step_flops(*each, shape).values()) + recomputed_flops(each[0], shape)
        for each in ((long, SIZES), (short, sizes))
    )
    assert part == pytest.approx(whole / 3, rel=0.15)  # mappings between widths are not shortened
    generator = replace(long.generator, num_hidden_layers=6)
    assert shortened(replace(long, generator=generator), SIZES)[0].generator.num_hidden_layers == 2


def test_a_slow_device_gets_fewer_sequences_and_a_fast_one_not_all_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = []
    monkeypatch.setattr(trial_step, "_step_seconds", lambda config, sizes, batch, world: batches.append(batch) or 1.0)
    config = config_of("both")
    for peak, sequences in ((1.0, 6), (1e12, 6), (1e12, 600)):
        shape = replace(SHAPE, sequences=sequences)
        measured_utilisation(config, SIZES, shape, peak, start_world("cpu"))
    assert [batch["input_ids"].shape for batch in batches] == [(1, 20), (6, 20), (16, 20)]
    assert [batch["fine_rows"].max() for batch in batches] == [4, 5 * 5 + 4, 15 * 5 + 4]
