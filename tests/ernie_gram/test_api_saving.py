"""What `Model.save` writes: the scores and the parameters of a model whose layer was changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import paddle
import pytest

from ernie_gram import Model
from ernie_gram.eager import ModelLayer
from ernie_gram.formats.model import TrainingRecord
from ernie_gram.formats.registry import read_model
from ernie_gram.graph import static_mode
from reader.errors import InputError
from tests.support.exported_models import random_model
from tests.support.small_model import TOKENS

pytestmark = pytest.mark.usefixtures("dynamic_mode")


def test_a_saved_model_has_the_scores_of_its_parameters_only(tmp_path: Path) -> None:
    training = TrainingRecord(scores={"perplexity": 118.0})
    for name, is_changed in (("same", False), ("changed", True)):
        model = Model(replace(random_model("explicit", vocab_size=TOKENS), training=training))
        weight = model.layer.encoder.embeddings.word.weight
        with paddle.no_grad():
            weight.set_value(weight * (0.5 if is_changed else 1.0))
        model.save(tmp_path / name)
        assert ("118" in (tmp_path / name / "README.md").read_text()) != is_changed


def test_parameters_are_saved_in_float32_and_only_if_they_are_finite(tmp_path: Path) -> None:
    model = Model(random_model("explicit", vocab_size=TOKENS))
    model.layer.to(dtype="bfloat16")
    expected = {parameter.name: parameter.astype("float32").numpy() for parameter in model.layer.parameters()}
    with static_mode(paddle.static.Scope()):
        model.save(tmp_path / "model")
    np.testing.assert_equal(read_model(tmp_path / "model").parameters, expected)
    weight = model.layer.encoder.embeddings.word.weight
    with paddle.no_grad():
        weight.set_value(weight * float("nan"))
    with pytest.raises(InputError, match="layer: word_embedding holds numbers that are not finite"):
        model.save(tmp_path / "nan")
    assert not (tmp_path / "nan").exists()


def removed(layer: ModelLayer) -> str:
    layer.encoder.layers = paddle.nn.LayerList(list(layer.encoder.layers)[:-1])
    return r"layers\.1\.\S+ \(encoder_layer_1_.* missing"


def exchanged(layer: ModelLayer) -> str:
    layer.encoder.layers = paddle.nn.LayerList(list(layer.encoder.layers)[::-1])
    return r"layers\.0\.\S+ \(encoder_layer_0_.* missing"


def added(layer: ModelLayer) -> str:
    layer.adapter = paddle.nn.Linear(2, 2)
    return r"adapter\.weight .*adapter\.bias .* not expected"


def resized(layer: ModelLayer) -> str:
    word = layer.encoder.embeddings.word
    with paddle.utils.unique_name.guard():
        word.weight = word.create_parameter([9, 24], attr=paddle.ParamAttr(word.weight.name))
    return r"word_embedding\) has shape \[9, 24\]"


@pytest.mark.parametrize("change", [removed, exchanged, added, resized])
def test_a_network_with_other_layers_than_the_model_is_not_saved(
    tmp_path: Path, change: Callable[[ModelLayer], str]
) -> None:
    model = Model(random_model("explicit", vocab_size=TOKENS))
    message = change(model.layer)
    with pytest.raises(InputError, match=message):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
