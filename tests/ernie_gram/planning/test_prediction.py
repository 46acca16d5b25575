"""The prediction of a run: time, and the largest batch that fits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ernie_gram.planning.memory import rank_memory
from ernie_gram.planning.prediction import Cluster, largest_batch, predict, report
from ernie_gram.planning.sizes import assumed_shape
from ernie_gram.pretraining.config import PathsConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.catalog import step_flops
from ernie_gram.training.config import TrainerConfig
from tests.support.small_model import MODEL, config_of

SIZES, SHAPE = CorpusSizes(1000, 500), BatchShape(2, 30, 3.0)
CONFIG = replace(
    config_of("explicit"),
    paths=PathsConfig(held_out="somewhere"),
    trainer=TrainerConfig(max_steps=1000, eval_every=300, eval_sequences=90),
)
CLUSTER = Cluster(ranks=4, peak=1e9, utilisation=0.5, memory=1e9, bandwidth=1e6)


@pytest.mark.parametrize("limit", [0, 9, 10, 11, 12, 70, 71, 1000])
def test_the_largest_batch_is_that_of_an_exhaustive_search(limit: int) -> None:
    def memory(sequences: int) -> int:
        return 10 + sequences * sequences // 3

    fitting = [n for n in range(1, 100) if memory(n) <= limit]
    assert largest_batch(memory, limit) == max(fitting, default=0)


def test_time_is_operations_over_speed_and_exchange_and_evaluations() -> None:
    prediction = predict(CONFIG, SIZES, SHAPE, CLUSTER)
    flops = sum(step_flops(CONFIG, SIZES, SHAPE).values())
    assert prediction.compute == pytest.approx(flops / 5e8)
    assert prediction.waiting == pytest.approx(1.5 * prediction.exchange.bytes / 1e6)
    # Evaluations before the first step, after 300, 600 and 900, and after the last; 23 sequences per process.
    assert prediction.evaluation == pytest.approx(flops / 3 / 2 * 23 / 5e8)
    seconds = 1000 * (prediction.compute + prediction.waiting) + 5 * prediction.evaluation
    assert prediction.days == pytest.approx(seconds / 86400)


@pytest.mark.parametrize(("held_out", "sequences"), [(None, 90), (91, 90), (10, 10)])
def test_only_existing_sequences_are_evaluated(held_out: int | None, sequences: int) -> None:
    alone = replace(CLUSTER, ranks=1)
    one = predict(CONFIG, SIZES, SHAPE, alone, held_out=1).evaluation
    assert predict(CONFIG, SIZES, SHAPE, alone, held_out).evaluation == pytest.approx(sequences * one)


def test_a_short_time_is_in_minutes_or_hours() -> None:
    prediction = predict(CONFIG, SIZES, SHAPE, CLUSTER)
    for days, text in ((0.0021, "3.0 minutes"), (0.5, "12.0 hours"), (1.25, "1.25 days")):
        assert f"1,000 steps in {text}, evaluations" in report(CONFIG, replace(prediction, days=days), CLUSTER)


@pytest.mark.parametrize(("cpu", "queries", "slots"), [(True, 0, 24), (False, 0, 30), (True, 4, 30)])
def test_padding_takes_no_time_and_no_memory_on_a_cpu_without_query_rows(cpu: bool, queries: int, slots: int) -> None:
    config = replace(
        config_of("cnp" if queries else "explicit"),
        data=replace(CONFIG.data, batch_size=256),
        paths=CONFIG.paths,
        trainer=replace(CONFIG.trainer, recompute=True),
    )
    cluster, shape = replace(CLUSTER, cpu=cpu), replace(SHAPE, sequences=64, queries=queries)
    found = predict(config, SIZES, replace(shape, padding=0.2), cluster)
    expected = predict(config, SIZES, replace(shape, slots=slots), cluster)
    assert found.flops == expected.flops
    # Held-out batches have no query rows.
    assert found.evaluation == predict(config, SIZES, replace(shape, slots=24 if cpu else 30), cluster).evaluation
    whole = predict(config, SIZES, shape, cluster).memory.total
    assert (found.memory.total < whole) == (slots < shape.slots)


def test_a_model_with_a_generator_is_evaluated_several_times() -> None:
    config = replace(config_of("enrm"), paths=CONFIG.paths, trainer=replace(CONFIG.trainer, eval_draws=3))
    once = replace(config, trainer=replace(config.trainer, eval_draws=1))
    times = [predict(each, SIZES, SHAPE, CLUSTER).evaluation for each in (config, once)]
    assert times[0] == pytest.approx(3 * times[1])


def totals_around(fitting: int, batch_size: int | None = None) -> list[int]:
    """Return the memory of `fitting` sequences per process and of one more; all of a batch unless its size is given."""
    found = []
    for sequences in (fitting, fitting + 1):
        data = replace(CONFIG.data, batch_size=batch_size or 4 * sequences)
        config = replace(CONFIG, data=data, trainer=replace(CONFIG.trainer, micro_batch=sequences))
        found.append(rank_memory(config, SIZES, replace(SHAPE, sequences=sequences), 4, cpu=False).total)
    return found


def test_more_sequences_than_fitting_exceed_the_memory() -> None:
    fitting = predict(CONFIG, SIZES, SHAPE, replace(CLUSTER, memory=5e6)).fitting
    assert fitting
    below, above = totals_around(fitting)
    assert below <= 5e6 < above


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
    assert parts.exchange == whole.exchange
    as_large = replace(whole_config, data=replace(CONFIG.data, batch_size=16))
    one = predict(as_large, SIZES, shape, CLUSTER).memory
    assert parts.memory.total == one.total + one.parameters
    assert "at most 10 each in 3 micro-batches of at most 4: " in report(config, parts, CLUSTER)


def test_the_largest_micro_batch_leaves_room_for_accumulated_gradients() -> None:
    config, shape = replace(CONFIG, data=replace(CONFIG.data, batch_size=4 * 1000)), replace(SHAPE, sequences=1000)
    fitting, all_fit = (
        predict(config, SIZES, shape, replace(CLUSTER, memory=memory)).fitting or 0 for memory in (5e6, 1e12)
    )
    assert all_fit >= 1000 > fitting > 0
    below, above = totals_around(fitting, batch_size=4 * 1000)
    assert below <= 5e6 < above


def test_what_is_unknown_is_not_predicted() -> None:
    prediction = predict(CONFIG, SIZES, SHAPE, replace(CLUSTER, memory=None, bandwidth=None))
    assert prediction.fitting is None
    assert prediction.waiting is None
    text = report(CONFIG, prediction, replace(CLUSTER, memory=None, bandwidth=None))
    assert "give --bandwidth" in text
    assert "at least" in text
    assert "at a time at most" not in text
    assert prediction.checkpoint > 0
    assert f"process 0 needs {prediction.checkpoint / 1e6:.1f} MB of main memory more" in text
    alone = replace(CLUSTER, ranks=1, bandwidth=None)
    assert predict(CONFIG, SIZES, SHAPE, alone).waiting == 0


LONG = replace(MODEL, max_position_embeddings=502)


def test_assumed_sequences_lose_the_slots_of_masked_ngrams() -> None:
    explicit, contiguous, queries = (
        assumed_shape(replace(config_of(rung, LONG), data=replace(CONFIG.data, max_seq_len=502)), 4, 2.5)
        for rung in ("explicit", "contiguous", "cnp")
    )
    assert explicit == BatchShape(4, 502 - 75 + 30, 30.0)
    assert contiguous == BatchShape(4, 502, 75.0)
    assert queries == BatchShape(4, 457, 30.0, 75, 75.0)
