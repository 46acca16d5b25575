"""Bytes between processes, and on the disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ernie_gram.config.loading import read_yaml
from ernie_gram.planning.exchange import (
    Exchange,
    checkpoint_bytes,
    checkpoint_steps,
    checkpoints_on_disk,
    step_exchange,
)
from ernie_gram.planning.sizes import CorpusSizes
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.training.config import TrainerConfig
from tests.support.configs import load


def test_a_ring_sends_each_byte_nearly_twice() -> None:
    exchange = Exchange(bytes=1000, sums=2)
    assert [exchange.seconds(ranks, 100) for ranks in (1, 2, 4)] == [0, 10, 15]
    assert exchange.seconds(512, 100) == pytest.approx(20, rel=0.01)


def test_one_process_exchanges_nothing() -> None:
    assert step_exchange(PretrainConfig(), CorpusSizes(100, 10), 1) == Exchange(0, 0)


def test_the_base_model_exchanges_its_gradients_in_buckets_of_32_megabytes() -> None:
    exchange = step_exchange(PretrainConfig(), CorpusSizes(30_522, 300_000), 64)
    assert exchange.bytes == pytest.approx(1.59e9, rel=0.01)
    assert 10 < exchange.sums < 1.59e9 / (32 << 20)


@pytest.mark.parametrize(("max_steps", "save_every", "keep"), [(10, 3, 2), (10, 3, 9), (9, 3, 1), (2, 3, 1)])
def test_checkpoints_are_those_that_the_loop_of_the_trainer_writes(max_steps: int, save_every: int, keep: int) -> None:
    trainer = TrainerConfig(max_steps=max_steps, save_every=save_every, keep_checkpoints=keep)
    config = replace(PretrainConfig(), trainer=trainer, optimizer=replace(PretrainConfig().optimizer, warmup_steps=0))
    disk: list[int] = []
    steps, largest = [], 0
    for step in range(1, max_steps + 1):
        if step % save_every == 0 or step == max_steps:
            steps.append(step)
            disk.append(step)
            largest = max(largest, len(disk))
            disk = disk[-keep:]
    assert list(checkpoint_steps(config)) == steps
    assert checkpoints_on_disk(config) == largest


def test_the_predicted_checkpoint_has_the_size_and_the_steps_of_a_real_one(built: Path, finished: Path) -> None:
    config = load("--config", str(finished / "config.yaml"))
    assert read_yaml(finished / "config.yaml")["trainer"]["max_steps"] == 24
    sizes = CorpusSizes(1000, 600)
    found = sorted(int(path.name[5:]) for path in finished.glob("step_*"))
    assert found == list(checkpoint_steps(config))[-config.trainer.keep_checkpoints :]
    arrays = sum(path.stat().st_size for path in (finished / "step_24").glob("*.safetensors"))
    assert 0 < arrays - checkpoint_bytes(config, sizes) < 40_000
