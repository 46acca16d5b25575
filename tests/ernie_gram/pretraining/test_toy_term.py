"""A term of one's own: one class, entered in the catalog. It is trained, evaluated, saved and planned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
from paddle.nn import functional as F

from ernie_gram.model.layers import Linear
from ernie_gram.model.parameters import LinearParameters, Normal, linear
from ernie_gram.pretraining.config import ObjectiveConfig, PretrainConfig
from ernie_gram.pretraining.network import parameter_shapes
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.catalog import TERMS, step_flops
from ernie_gram.pretraining.terms.term import Encoded, Reference, Term
from ernie_gram.pretraining.trunk import Trunk
from ernie_gram.resources.memory import FLOAT, step_memory
from ernie_gram.run import checkpoint
from ernie_gram.run.run_log import read_log
from reader.batches.fields import COARSE_LABELS, UNIT_IDS, Batch
from tasks.convert import main as convert
from tests.support.commands import assert_one_line_error, call
from tests.support.runs import evaluations, pretrain
from tests.support.small_model import NGRAMS, TOKENS, config_of

WEIGHT = 0.5


class NgramOrToken(Term):
    """Binary cross entropy of "the masked unit is an n-gram", at every masked slot."""

    name = "kind_of_unit"
    fields = (COARSE_LABELS,)
    num_sums = 2

    def weight(self, objective: ObjectiveConfig) -> float:
        return WEIGHT if objective.is_explicit else 0.0

    def parameters(self, config: PretrainConfig, sizes: CorpusSizes) -> LinearParameters:
        return linear("kind_of_unit_fc", config.model.hidden_size, 1, Normal(config.model.initializer_range))

    def layer(self, config: PretrainConfig, sizes: CorpusSizes, trunk: Trunk) -> Linear:
        return Linear(self.parameters(config, sizes))

    def losses(self, layer: Any, trunk: Trunk, encoded: Encoded) -> paddle.Tensor:
        logits = layer(encoded.masked).flatten()
        is_ngram = (encoded.feeds[COARSE_LABELS.name] >= trunk.num_tokens).astype("float32")
        return F.binary_cross_entropy_with_logits(logits.astype("float32"), is_ngram, reduction="none")

    def loss(self, layer: Any, trunk: Trunk, encoded: Encoded) -> tuple[paddle.Tensor, paddle.Tensor]:
        losses = self.losses(layer, trunk, encoded)
        return losses.sum(), paddle.shape(losses)[0].astype("float32")

    def fetches(self, layer: Any, trunk: Trunk, encoded: Encoded) -> dict[str, paddle.Tensor]:
        return {"kind_of_unit_loss": self.losses(layer, trunk, encoded)}

    def sums(self, fetched: dict[str, np.ndarray], batch: Batch, reference: Reference) -> list[float]:
        return [len(batch[UNIT_IDS.name]), fetched["kind_of_unit_loss"].sum()]

    def metrics(self, sums: list[float]) -> dict[str, float]:
        return {"kind_of_unit_loss": sums[1] / sums[0]}

    def products(self, config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape) -> int:
        return 2 * shape.predicted_rows * config.model.hidden_size


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """Enter the term in the catalog for the time of a test."""
    before = list(TERMS)
    TERMS.append(NgramOrToken())
    yield
    TERMS[:] = before


def test_a_term_is_trained_evaluated_and_saved(built: Path, tmp_path: Path) -> None:
    options = ["--trainer.eval_every=6", "--trainer.eval_sequences=20", "--optimizer.decay_steps=12"]
    pretrain(built, tmp_path / "whole", "--trainer.max_steps=12", *options).ok()
    records = [record for record in read_log(tmp_path / "whole") if record["kind"] == "train"]
    for record in records:
        assert record["loss"] == pytest.approx(record["explicit"] + WEIGHT * record["kind_of_unit"], rel=1e-5)
    found = evaluations(tmp_path / "whole")
    assert found[-1]["kind_of_unit_loss"] < found[0]["kind_of_unit_loss"]
    assert found[0]["kind_of_unit_loss"] == pytest.approx(np.log(2), abs=0.05)
    assert checkpoint.load_model(tmp_path / "whole" / "step_12")["kind_of_unit_fc.w_0"].shape == (32, 1)
    refused = call(convert, str(tmp_path / "whole"), str(tmp_path / "converted"))
    assert_one_line_error(refused, "")
    assert "kind_of_unit_fc.b_0, kind_of_unit_fc.w_0" in refused.stderr
    # Micro-batches count the rows of each term.
    pretrain(built, tmp_path / "divided", "--trainer.max_steps=1", "--trainer.micro_batch=3", *options).ok()
    one = next(record for record in read_log(tmp_path / "divided") if record["kind"] == "train")
    assert one["kind_of_unit"] == pytest.approx(records[0]["kind_of_unit"], rel=0.02)


def test_a_term_is_part_of_the_plan() -> None:
    config, sizes, shape = config_of("explicit"), CorpusSizes(TOKENS, NGRAMS), BatchShape(8, 30, 4.0)

    def planned() -> tuple[set[str], float, float]:
        names, flops = set(parameter_shapes(config, sizes)), step_flops(config, sizes, shape)
        parameters = step_memory(config, sizes, shape, cpu=True)["parameters"]
        return names, flops, parameters / FLOAT

    names, flops, stored = planned()
    TERMS.pop()
    other_names, other_flops, other_stored = planned()
    assert names - other_names == {"kind_of_unit_fc.w_0", "kind_of_unit_fc.b_0"}
    assert flops - other_flops == 3 * 2 * 32 * 24
    # Its 25 parameters.
    assert stored - other_stored == 25
