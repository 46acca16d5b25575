"""Each warning appears for the setting that it is about, and for no other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ernie_gram.planning.conflicts import conflicts
from ernie_gram.planning.prediction import Cluster, predict
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from tests.support.configs import load

GOOD = [
    "--model.hidden_size=64",
    "--model.num_attention_heads=8",
    "--model.num_hidden_layers=2",
    "--model.max_position_embeddings=32",
    "--data.max_seq_len=32",
    "--data.batch_size=64",
    "--optimizer.warmup_steps=10",
    "--objective.generator_weight=0",
    "--objective.rtd_weight=0",
    "--trainer.max_steps=1000",
    "--trainer.eval_every=500",
    "--trainer.eval_sequences=64",
    "--trainer.save_every=500",
    "--paths.held_out=held_out",
]
SIZES, SHAPE = CorpusSizes(1000, 600), BatchShape(16, 30, 3.0, 4, 4.0)
CLUSTER = Cluster(ranks=4, peak=1e10, utilisation=0.5, memory=1e9, bandwidth=1e9)


def found(*more: str, free: int = 10**12, sizes: CorpusSizes = SIZES, **changes: Any) -> list[str]:
    config = load(*GOOD, *more)
    of_shape = {key: changes.pop(key) for key in ("padding", "queries") if key in changes}
    cluster = replace(CLUSTER, **changes)
    shape = replace(SHAPE, sequences=config.largest_micro_batch(cluster.ranks), **of_shape)
    prediction = predict(config, sizes, shape, cluster)
    return conflicts(config, sizes, prediction, cluster, free)


def test_good_settings_have_no_conflict() -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("options", "changes", "start"),
    [
        (["--data.batch_size=66"], {}, "data.batch_size: 66 is not a multiple of 4 processes"),
        ([], {"memory": 6e6}, "trainer.micro_batch: 16 sequences at a time need 15.6 MB of 6.0 MB; "),
        (["--trainer.recompute=true"], {"memory": 6e6}, "trainer.micro_batch: 16 sequences at a time need"),
        (["--trainer.recompute=true"], {}, "trainer.recompute: takes 1"),
        (["--trainer.micro_batch=2"], {}, "trainer.micro_batch: only 2 sequences at a time, where "),
        (
            ["--optimizer.warmup_steps=1000", "--optimizer.decay_steps=5000"],
            {},
            "optimizer.warmup_steps: 1,000 steps are not over",
        ),
        (["--paths.held_out=null"], {}, "paths.held_out: not given"),
        (["--trainer.eval_every=1001"], {}, "trainer.eval_every: 1,001 is beyond the 1,000 steps"),
        (["--trainer.eval_every=4"], {}, "trainer.eval_every: an evaluation takes"),
        (["--trainer.keep_checkpoints=1"], {}, "trainer.keep_checkpoints: with 1"),
        ([], {"padding": 0.4}, "data.max_seq_len: 40% of the slots of a batch are padding; set data.pack_documents"),
        (["--data.pack_documents=true"], {"padding": 0.4}, "data.max_seq_len: 40% of the slots"),
        (["--model.max_position_embeddings=40"], {}, "model.max_position_embeddings: positions beyond"),
        ([], {"sizes": CorpusSizes(1001, 600)}, "paths.corpus: 1,601 classes are not a multiple of 8"),
        (["--model.out_emb_size=12"], {}, "model.out_emb_size: a width of 12"),
        ([], {"free": 10}, "paths.output: the checkpoints take up to"),
        ([], {"peak": 1e5}, "trainer.save_every: "),
    ],
)
def test_a_conflict_is_named_by_its_key(options: list[str], changes: dict[str, Any], start: str) -> None:
    (line,) = found(*options, **changes)
    assert line.startswith(start)


def test_the_number_of_classes_is_changed_with_a_command() -> None:
    (line,) = found(sizes=CorpusSizes(1001, 600))
    assert line.endswith("the number of n-grams (ernie-gram lexicon --top) by 7 more or 1 fewer")


def test_recompute_is_proposed_where_more_sequences_fit_with_it() -> None:
    batch, recompute = found("--model.num_hidden_layers=8", memory=26e6)
    assert batch.startswith("trainer.micro_batch: 16 sequences at a time need")
    assert recompute == "trainer.recompute: set to true, 30 sequences per process would fit"


def test_padding_matters_only_where_it_is_computed() -> None:
    assert found(padding=0.4, queries=0, cpu=True) == []
    assert found(padding=0.4, cpu=True) == found(padding=0.4) != []


def test_widths_do_not_matter_on_a_cpu() -> None:
    assert found("--model.out_emb_size=12", "--trainer.device=cpu") == []
    assert found("--model.out_emb_size=12", cpu=True) == []
