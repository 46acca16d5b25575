"""The prediction of a run: time, disk, bytes between processes, and the largest batch that fits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ernie_gram.config.loading import read_yaml
from ernie_gram.distributed.collectives import BUCKET_NUMBERS
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes, assumed_shape
from ernie_gram.pretraining.terms.catalog import step_flops
from ernie_gram.resources.memory import step_memory
from ernie_gram.resources.prediction import Cluster, Prediction, predict, report, step_exchange, warnings
from ernie_gram.training.config import TrainerConfig
from tests.support.objectives import load
from tests.support.small_model import MODEL, config_of

SIZES, SHAPE = CorpusSizes(1000, 500), BatchShape(2, 30, 3.0)
CONFIG = replace(config_of("explicit"), trainer=TrainerConfig(max_steps=1000))
CLUSTER = Cluster(ranks=4, peak=1e9, utilisation=0.5, memory=1e9, bandwidth=1e6)


def total(prediction: Prediction) -> float:
    return sum(prediction.memory.values())


def test_time_is_operations_over_speed_and_exchange() -> None:
    prediction = predict(CONFIG, SIZES, SHAPE, CLUSTER)
    flops = step_flops(CONFIG, SIZES, SHAPE)
    assert prediction.compute == pytest.approx(flops / 5e8)
    # Each of four processes sends 2 x 3 / 4 times the bytes in a ring.
    assert prediction.waiting == pytest.approx(1.5 * prediction.exchanged / 1e6)
    assert prediction.days == pytest.approx(1000 * (prediction.compute + prediction.waiting) / 86400)


@pytest.mark.parametrize(("cpu", "queries", "slots"), [(True, 0, 24), (False, 0, 30), (True, 4, 24)])
def test_padding_takes_no_time_and_no_memory_on_a_cpu(cpu: bool, queries: int, slots: int) -> None:
    config = replace(
        config_of("cnp" if queries else "explicit"),
        data=replace(CONFIG.data, batch_size=256),
        trainer=replace(CONFIG.trainer, recompute=True),
    )
    cluster, shape = CLUSTER._replace(cpu=cpu), replace(SHAPE, sequences=64, queries=queries)
    found = predict(config, SIZES, replace(shape, padding=0.2), cluster)
    expected = predict(config, SIZES, replace(shape, slots=slots), cluster)
    assert found.flops == expected.flops
    assert (total(found) < total(predict(config, SIZES, shape, cluster))) == (slots < shape.slots)


@pytest.mark.parametrize(("batch_size", "steps"), [(8, 1), (4000, 2)])
def test_more_sequences_than_fitting_exceed_the_memory(batch_size: int, steps: int) -> None:
    """If a process's whole share of a batch does not fit, accumulated gradients take room too."""
    config = replace(CONFIG, data=replace(CONFIG.data, batch_size=batch_size))
    shape = replace(SHAPE, sequences=batch_size // 4)
    fitting = predict(config, SIZES, shape, CLUSTER._replace(memory=5e6)).fitting
    assert fitting
    assert (fitting < shape.sequences) == (steps == 2)
    below, above = (
        sum(step_memory(config, SIZES, replace(SHAPE, sequences=number), False, steps).values())
        for number in (fitting, fitting + 1)
    )
    assert below <= 5e6 < above
    assert predict(config, SIZES, shape, CLUSTER._replace(memory=1e5)).fitting == 0


def test_micro_batches_take_the_time_of_the_whole_share_and_the_memory_of_one_and_of_accumulated_gradients() -> None:
    whole_config = replace(CONFIG, data=replace(CONFIG.data, batch_size=39))
    config = replace(whole_config, trainer=replace(CONFIG.trainer, micro_batch=4))
    # 39 sequences on 4 processes: at most 10 each, in 3 micro-batches of at most 4.
    shape = replace(SHAPE, sequences=config.largest_micro_batch(4))
    assert shape.sequences == 4
    parts = predict(config, SIZES, shape, CLUSTER)
    whole = predict(whole_config, SIZES, replace(SHAPE, sequences=10), CLUSTER)
    assert parts.steps == 3
    assert parts.compute == pytest.approx(whole.compute)
    assert parts.exchanged == whole.exchanged
    as_large = replace(whole_config, data=replace(CONFIG.data, batch_size=16))
    one = predict(as_large, SIZES, shape, CLUSTER)
    assert total(parts) == total(one) + one.memory["parameters"]


def test_what_is_unknown_is_not_predicted() -> None:
    unknown = CLUSTER._replace(memory=None, bandwidth=None)
    prediction = predict(CONFIG, SIZES, SHAPE, unknown)
    assert (prediction.fitting, prediction.waiting) == (None, None)
    assert "give --bandwidth" in report(CONFIG, prediction, unknown)
    assert warnings(CONFIG, SIZES, prediction, unknown, 10**12) == []
    assert predict(CONFIG, SIZES, SHAPE, unknown._replace(ranks=1)).waiting == 0


def test_a_batch_or_checkpoints_that_do_not_fit_are_named_with_what_would() -> None:
    def found(memory: float, free: int = 10**12, recompute: bool = False) -> list[str]:
        config = replace(CONFIG, model=replace(MODEL, num_hidden_layers=8))
        config = replace(config, trainer=replace(CONFIG.trainer, recompute=recompute))
        shape, cluster = replace(SHAPE, sequences=64), CLUSTER._replace(memory=memory)
        return warnings(config, SIZES, predict(config, SIZES, shape, cluster), cluster, free)

    assert found(1e9) == []
    assert [line.partition(": ")[0] for line in found(1e9, free=10)] == ["paths.output"]
    (line,) = found(2e7)
    assert all(
        key in line for key in ("trainer.micro_batch: 64", "with trainer.micro_batch ", "trainer.recompute true")
    )
    assert "trainer.recompute" not in found(1e7, recompute=True)[0]


@pytest.mark.parametrize(("max_steps", "save_every", "keep"), [(10, 3, 2), (10, 3, 9), (9, 3, 1), (2, 3, 1)])
def test_checkpoints_are_those_that_the_loop_of_the_trainer_writes(max_steps: int, save_every: int, keep: int) -> None:
    trainer = TrainerConfig(max_steps=max_steps, save_every=save_every, keep_checkpoints=keep)
    config = replace(CONFIG, trainer=trainer, optimizer=replace(CONFIG.optimizer, warmup_steps=0))
    prediction = predict(config, SIZES, SHAPE, CLUSTER)
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
    checkpoint = predict(config, CorpusSizes(1000, 600), SHAPE, CLUSTER).checkpoint
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


LARGE = BatchShape(4, 475, 40.0, 77, 77.0)


def test_the_base_model_exchanges_only_the_rows_of_its_samples() -> None:
    config, sizes = PretrainConfig(), CorpusSizes(30_522, 300_000)
    exchanged, rows = step_exchange(config, sizes, LARGE, 64)
    # Without the 300,000 x 768 numbers of the n-gram embedding; but with a mark per row, and the rows of the samples.
    table, samples = 300_000 * 768, config.data.batch_size * LARGE.predicted
    assert exchanged == pytest.approx(1.59e9 - 4 * (table - 300_000 - rows * 768), rel=0.01)
    assert 0.8 * samples < rows < samples
    assert step_exchange(config, sizes, LARGE, 1) == (0, 0)


@pytest.mark.parametrize("ngrams", [1000, 300_000])
def test_only_a_large_embedding_of_samples_is_exchanged_by_row(ngrams: int) -> None:
    sizes, config = CorpusSizes(1000, ngrams), PretrainConfig()
    tied = replace(config, model=replace(config.model, out_emb_size=0))
    without_generator = replace(config, objective=replace(config.objective, generator_weight=0.0, rtd_weight=0.0))
    assert step_exchange(tied, sizes, LARGE, 2)[1] == step_exchange(without_generator, sizes, LARGE, 2)[1] == 0
    assert bool(step_exchange(config, sizes, LARGE, 2)[1]) == (ngrams * 768 > BUCKET_NUMBERS)
