"""The job of a fine-tuning: learning rates, and the first of several splits decides on threshold and best model."""

from __future__ import annotations

import random
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from ernie_gram.distributed.world import World
from ernie_gram.formats.registry import read_model
from ernie_gram.run import checkpoint
from tasks.files.official import Report
from tasks.kinds.base import Float32s
from tasks.kinds.span import SpanFeatures
from tasks.training.data import SplitData
from tests.support.tiny_task import checked
from tests.tasks.kinds.test_span import example_of, span_kind
from tests.tasks.kinds.tiny import tokenizer

# Independent of the code: which parameters BERT's papers and ours put where.
EMBEDDINGS = {"word_embedding", "pos_embedding", "sent_embedding", "rel_pos_embedding"}
EMBEDDINGS |= {"pre_encoder_layer_norm_scale", "pre_encoder_layer_norm_bias"}


def test_every_parameter_of_a_network_is_scaled(tiny_task: Path, finetuned: Path) -> None:
    """The factors of a real model's parameters: no name falls through to 1 by accident."""
    from tasks.training.network import rate_scale

    names = checkpoint.load_model(finetuned / "best")
    assert rate_scale("encoder_layer_11_ffn_fc_0.w_0", 13, 0.5) == rate_scale("emb_hidden_mapping", 1, 0.5) == 0.25
    assert {rate_scale(f"{name}.w_0", 2, 0.5) for name in ("pooled_fc", "mask_lm_trans_fc")} == {1.0}
    scaled = {name: rate_scale(name, 2, 0.5) for name in names}
    assert {name for name, factor in scaled.items() if factor == 1} == {"cls_out_w", "cls_out_b"}
    assert {name for name, factor in scaled.items() if factor == 0.125} == EMBEDDINGS & {*names}
    layers = {factor: {name[:15] for name, found in scaled.items() if found == factor} for factor in (0.25, 0.5)}
    assert layers == {0.25: {"encoder_layer_0"}, 0.5: {"encoder_layer_1"}}


def test_the_settings_of_the_loop_follow_from_the_samples_and_dropout_from_the_model(
    tiny_task: Path, tmp_path: Path
) -> None:
    from tasks.training.network import TaskNetwork, finetuning_job

    run = checked(tiny_task, tmp_path / "run")
    network = TaskNetwork.of(run.kind, run.encoder, run.model.parameters)
    job = finetuning_job(run, network, MagicMock())
    assert (run.epoch_steps, run.max_steps) == (8, 32)  # 61 samples in batches of 8
    assert (job.trainer.max_steps, job.trainer.eval_every, job.trainer.save_every) == (32, 8, 8)
    assert (job.optimizer.warmup_steps, job.optimizer.decay_steps) == (3, 32)
    rates = np.array([job.learning_rate(step) for step in range(33)])
    assert rates.argmax() in (2, 3)
    assert rates[-1] == 0
    np.testing.assert_allclose(np.diff(rates[3:]), -1e-2 / 29)
    assert job.selection == "score"
    assert job.rate_scale("encoder_layer_0_ffn_fc_0.w_0") == pytest.approx(0.9**2)  # the setting of the tiny task
    given = read_model(tiny_task / "model").config
    changed = checked(tiny_task, tmp_path / "run", "--dropout.hidden=0.3", "--dropout.attention=null").encoder
    assert changed.hidden_dropout_prob == 0.3
    assert changed.attention_probs_dropout_prob == given.attention_probs_dropout_prob > 0
    assert not changed.use_pooler  # the head takes the mean


def test_pools_micro_batches_and_the_seed_decide_over_the_batches(tiny_task: Path, tmp_path: Path) -> None:
    from ernie_gram.distributed.world import start_world
    from tasks.training.network import TaskNetwork, finetuning_job

    def lengths(*more: str) -> list[list[list[int]]]:
        """Return the lengths of the samples of an epoch: of each micro-batch of each step."""
        run = checked(tiny_task, tmp_path / "run", *more)
        network = TaskNetwork.of(run.kind, run.encoder, run.model.parameters)
        with closing(finetuning_job(run, network, MagicMock()).batches(0, start_world("cpu"))) as batches:
            return [[part["lengths"].tolist() for part in step] for step in islice(batches, run.epoch_steps)]

    def padding(steps: list[list[list[int]]]) -> int:
        return sum(max(part) * len(part) - sum(part) for step in steps for part in step)

    plain, pooled, parts = lengths(), lengths("--optimizer.length_pool=8"), lengths("--trainer.micro_batch=3")
    samples = [[*chain.from_iterable(chain.from_iterable(steps))] for steps in (plain, pooled)]
    assert sorted(samples[0]) == sorted(samples[1])
    assert {len(step) for step in plain} == {1}
    assert padding(pooled) < padding(plain) / 2
    assert [sorted(chain.from_iterable(step)) for step in parts] == [sorted(step[0]) for step in plain]
    assert {len(step) for step in parts} == {3}
    assert padding(parts) < padding(plain) / 2
    assert lengths("--seed=2") != plain


REPORT = Report("squad2", "dev", (), 0, 0, (), (), {})
WORLD: Any = World


def test_each_unit_is_scored_by_one_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    from tasks.training import network

    monkeypatch.setattr(network, "sum_array", lambda executor, array, world: array)
    kind, rng = span_kind("squad2"), random.Random(3)
    examples: list[Any] = [example_of(rng, str(i), False) for i in range(30)]
    features = kind.encode(examples, tokenizer(), training=False)
    parts = [
        network.Scorer(kind, lambda _: {"scores": 1}, WORLD, World(rank, 3, WORLD)).scores(features, 4)
        for rank in range(3)
    ]
    assert min(part.sum() for part in parts) > 0
    np.testing.assert_array_equal(sum(parts), 1)


def test_the_threshold_is_chosen_on_the_first_split_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from tasks.training.network import Scorer

    rng = random.Random(3)
    kind = span_kind("squad2")

    def split(name: str, impossible: bool) -> SplitData:
        examples: list[Any] = [example_of(rng, f"{name}{i}", impossible) for i in range(30)]
        return SplitData(name, examples, kind.encode(examples, tokenizer(), training=False), REPORT)

    def scores(self: Scorer, features: SpanFeatures, batch_size: int) -> Float32s:
        return np.random.default_rng(features.num_units).normal(size=(features.num_units, 2)).astype(np.float32)

    monkeypatch.setattr(Scorer, "scores", scores)
    scorer = Scorer(kind, MagicMock(), WORLD, WORLD)
    dev, test = split("dev", impossible=False), split("test", impossible=True)
    (_, first), (_, second) = scorer.predict((dev, test), 4)
    assert first.options["threshold"] == second.options["threshold"]
    # On the second split alone, the best threshold gives no question an answer.
    ((_, alone),) = scorer.predict((test,), 4)
    assert {*alone.answers} == {""} != {*second.answers}
