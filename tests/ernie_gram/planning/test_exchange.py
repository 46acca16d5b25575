"""Bytes between processes, and on the disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ernie_gram.distributed.buckets import BUCKET_NUMBERS
from ernie_gram.planning.exchange import (
    Exchange,
    checkpoint_bytes,
    checkpoints_on_disk,
    step_exchange,
)
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.training.config import TrainerConfig
from reader.system.untrusted_text import read_yaml
from tests.support.configs import load

SHAPE = BatchShape(4, 475, 40.0, 77, 77.0)


def test_a_ring_sends_each_byte_nearly_twice() -> None:
    exchange = Exchange(bytes=1000, sums=2)
    assert [exchange.sent(ranks) for ranks in (1, 2, 4)] == [0, 1000, 1500]
    assert exchange.sent(512) == pytest.approx(2000, rel=0.01)


def test_one_process_exchanges_nothing() -> None:
    assert step_exchange(PretrainConfig(), CorpusSizes(100, 10), SHAPE, 1) == Exchange(0, 0)


def test_the_base_model_exchanges_its_gradients_in_buckets_of_32_megabytes() -> None:
    config, sizes = PretrainConfig(), CorpusSizes(30_522, 300_000)
    exchange = step_exchange(config, sizes, SHAPE, 64)
    # Without the 300,000 x 768 numbers of the n-gram embedding; but with a mark per row, and the rows of the samples.
    table, samples = 300_000 * 768, config.data.batch_size * SHAPE.predicted
    assert exchange.bytes == pytest.approx(1.59e9 - 4 * (table - 300_000 - exchange.rows * 768), rel=0.01)
    assert 0.8 * samples < exchange.rows < samples
    assert 10 < exchange.sums < exchange.bytes / (32 << 20)


@pytest.mark.parametrize("ngrams", [1000, 300_000])
def test_only_a_large_embedding_of_samples_is_exchanged_by_row(ngrams: int) -> None:
    sizes, config = CorpusSizes(1000, ngrams), PretrainConfig()
    tied = replace(config, model=replace(config.model, out_emb_size=0))
    without_generator = replace(config, objective=replace(config.objective, generator_weight=0.0, rtd_weight=0.0))
    assert not step_exchange(tied, sizes, SHAPE, 2).rows
    assert not step_exchange(without_generator, sizes, SHAPE, 2).rows
    assert bool(step_exchange(config, sizes, SHAPE, 2).rows) == (ngrams * 768 > BUCKET_NUMBERS)


@pytest.mark.parametrize("drawn", [1, 30, 1000, 100_000])
def test_expected_ngrams_are_those_of_many_draws(drawn: int) -> None:
    random = np.random.default_rng(drawn)
    counts = np.concatenate([np.full(20, 50), 2000 // np.arange(1, 301)])
    units = [random.choice(320, drawn, p=counts / counts.sum()) for _ in range(40)]
    found = np.mean([len(set(each[each >= 20].tolist())) for each in units])
    assert CorpusSizes(20, 300, counts[20:] / counts.sum()).expected_ngrams(drawn) == pytest.approx(
        found, rel=0.1, abs=0.2
    )
    units = [random.integers(320, size=drawn) for _ in range(40)]
    found = np.mean([len(set(each[each >= 20].tolist())) for each in units])
    assert CorpusSizes(20, 300).expected_ngrams(drawn) == pytest.approx(found, rel=0.1, abs=0.2)


@pytest.mark.parametrize(("max_steps", "save_every", "keep"), [(10, 3, 2), (10, 3, 9), (9, 3, 1), (2, 3, 1)])
def test_checkpoints_are_those_that_the_loop_of_the_trainer_writes(max_steps: int, save_every: int, keep: int) -> None:
    trainer = TrainerConfig(max_steps=max_steps, save_every=save_every, keep_checkpoints=keep)
    config = replace(PretrainConfig(), trainer=trainer, optimizer=replace(PretrainConfig().optimizer, warmup_steps=0))
    disk: list[int] = []
    largest = 0
    for step in range(1, max_steps + 1):
        if step % save_every == 0 or step == max_steps:
            disk.append(step)
            largest = max(largest, len(disk))
            disk = disk[-keep:]
    assert checkpoints_on_disk(config) == largest


def test_the_predicted_checkpoint_has_the_size_and_the_steps_of_a_real_one(built: Path, finished: Path) -> None:
    config = load("--config", str(finished / "config.yaml"))
    assert read_yaml(finished / "config.yaml")["trainer"]["max_steps"] == 24
    sizes = CorpusSizes(1000, 600)
    arrays = sum(path.stat().st_size for path in (finished / "step_24").glob("*.safetensors"))
    assert 0 < arrays - checkpoint_bytes(config, sizes) < 40_000
