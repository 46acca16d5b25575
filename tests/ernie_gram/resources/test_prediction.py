"""The prediction of a run: time, memory and disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ernie_gram.config.loading import read_yaml
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes, assumed_shape
from ernie_gram.pretraining.terms.catalog import step_flops
from ernie_gram.resources.prediction import Prediction, predict, report
from ernie_gram.training.config import TrainerConfig
from tests.support.objectives import load
from tests.support.small_model import MODEL, config_of

SIZES, SHAPE = CorpusSizes(1000, 500), BatchShape(2, 30, 3.0)
CONFIG = replace(config_of("explicit"), trainer=TrainerConfig(max_steps=1000))


def total(prediction: Prediction) -> float:
    return sum(prediction.memory.values())


def test_time_is_operations_over_speed() -> None:
    prediction = predict(CONFIG, SIZES, SHAPE, 4)
    flops = step_flops(CONFIG, SIZES, SHAPE)
    assert prediction.flops == pytest.approx(flops)
    lines = report(replace(CONFIG, trainer=TrainerConfig(max_steps=86400)), prediction, 4, 2 * flops, 0.25)
    assert "step     2.000 s: " in lines
    assert "time     at least 2 days, 0:00:00 for 86,400 steps, 43,200 per day" in lines


@pytest.mark.parametrize(("cpu", "queries", "slots"), [(True, 0, 24), (False, 0, 30), (True, 4, 24)])
def test_padding_takes_no_time_and_no_memory_on_a_cpu(cpu: bool, queries: int, slots: int) -> None:
    config = replace(
        config_of("cnp" if queries else "explicit"),
        data=replace(CONFIG.data, batch_size=256),
        trainer=replace(CONFIG.trainer, recompute=True),
    )
    shape = replace(SHAPE, sequences=64, queries=queries)
    found = predict(config, SIZES, replace(shape, padding=0.2), 4, cpu)
    expected = predict(config, SIZES, replace(shape, slots=slots), 4, cpu)
    assert found.flops == expected.flops
    assert (total(found) < total(predict(config, SIZES, shape, 4, cpu))) == (slots < shape.slots)


def test_micro_batches_take_the_time_of_the_whole_share_and_the_memory_of_one_and_of_accumulated_gradients() -> None:
    whole_config = replace(CONFIG, data=replace(CONFIG.data, batch_size=39))
    config = replace(whole_config, trainer=replace(CONFIG.trainer, micro_batch=4))
    # 39 sequences on 4 processes: at most 10 each, in 3 micro-batches of at most 4.
    shape = replace(SHAPE, sequences=config.largest_micro_batch(4))
    assert shape.sequences == 4
    parts = predict(config, SIZES, shape, 4)
    whole = predict(whole_config, SIZES, replace(SHAPE, sequences=10), 4)
    assert parts.steps == 3
    assert parts.flops == pytest.approx(whole.flops)
    as_large = replace(whole_config, data=replace(CONFIG.data, batch_size=16))
    one = predict(as_large, SIZES, shape, 4)
    assert total(parts) == total(one) + one.memory["parameters"]


@pytest.mark.parametrize(("max_steps", "save_every", "keep"), [(10, 3, 2), (10, 3, 9), (9, 3, 1), (2, 3, 1)])
def test_checkpoints_are_those_that_the_loop_of_the_trainer_writes(max_steps: int, save_every: int, keep: int) -> None:
    trainer = TrainerConfig(max_steps=max_steps, save_every=save_every, keep_checkpoints=keep)
    config = replace(CONFIG, trainer=trainer, optimizer=replace(CONFIG.optimizer, warmup_steps=0))
    prediction = predict(config, SIZES, SHAPE, 4)
    disk: list[int] = []
    largest = 0
    for step in range(1, max_steps + 1):
        if step % save_every == 0 or step == max_steps:
            disk.append(step)
            largest = max(largest, len(disk))
            disk = disk[-keep:]
    assert prediction.disk == largest * prediction.checkpoint


def test_the_predicted_checkpoint_has_the_size_and_the_steps_of_a_real_one(built: Path, finished: Path) -> None:
    config = load("--config", str(finished / "config.yaml"))
    assert read_yaml(finished / "config.yaml")["trainer"]["max_steps"] == 24
    checkpoint = predict(config, CorpusSizes(1000, 600), SHAPE, 4).checkpoint
    arrays = sum(path.stat().st_size for path in (finished / "step_24").glob("*.safetensors"))
    assert 0 < arrays - checkpoint < 40_000


LONG = replace(MODEL, max_position_embeddings=502)


def test_assumed_sequences_lose_the_slots_of_masked_ngrams() -> None:
    explicit, contiguous, queries = (
        assumed_shape(replace(config_of(rung, LONG), data=replace(CONFIG.data, max_seq_len=502)), 4, 2.5)
        for rung in ("explicit", "contiguous", "cnp")
    )
    assert explicit == BatchShape(4, 502 - 75 + 30, 30.0)
    assert contiguous == BatchShape(4, 502, 75.0)
    assert queries == BatchShape(4, 457, 30.0, 75, 75.0)
