"""The forward program of a model: equal to the layer, without copies of parameters, and as they are at present."""

from __future__ import annotations

import warnings
from unittest.mock import patch

import numpy as np
import pytest

from ernie_gram.api import Model
from ernie_gram.inference.texts import EncodedText
from ernie_gram.kernels import blas, products
from reader.errors import InputError
from tests.support.exported_models import random_model
from tests.support.small_model import TOKENS

import paddle  # isort: skip

PAIRS = {"use_sentence_embedding": True, "use_pooler": True}

pytestmark = pytest.mark.usefixtures("dynamic_mode")


def model_and_texts(precision: str = "float32") -> tuple[Model, list[EncodedText]]:
    record, random = random_model(None, **PAIRS), np.random.default_rng(3)
    texts = [
        EncodedText(random.integers(5, TOKENS, n), (np.arange(n) > n // 2).astype(np.int64), [None] * n)
        for n in (20, 7, 12)
    ]
    return Model(record, precision), texts


def test_all_outputs_are_those_of_the_layer_and_stay_the_same_when_fewer_are_asked_for() -> None:
    model, texts = model_and_texts()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # users of Python would see those of Paddle
        found = model.outputs(texts, ["hidden", "cls", "mean", "pooled"])
    for names in (["pooled"], ["cls", "pooled"], ["mean"], ["hidden"]):
        alone = model.outputs(texts, names)
        assert list(alone) == names
        for name, values in alone.items():
            np.testing.assert_allclose(values, found[name], atol=1e-6, err_msg=name)
    batch = model._batch(texts)
    hidden, pooled = (each.numpy() for each in model.layer(*map(paddle.to_tensor, batch.values())))
    for row, text in enumerate(texts):
        np.testing.assert_allclose(found["hidden"][row, : len(text)], hidden[row, : len(text)], atol=1e-5)
        np.testing.assert_allclose(found["mean"][row], hidden[row, : len(text)].mean(0), atol=1e-5)
    np.testing.assert_allclose(found["cls"], hidden[:, 0], atol=1e-5)
    np.testing.assert_allclose(found["pooled"], pooled, atol=1e-5)


def test_parameters_are_read_where_they_are_and_those_of_a_layer_as_they_are_now() -> None:
    model, texts = model_and_texts()
    before = model.outputs(texts, ["pooled"])["pooled"]
    forward, name = model._forward, "encoder_layer_0_ffn_fc_0.w_0"
    own = forward._scope.find_var(name).get_tensor()
    assert own._ptr() == model._record.parameters[name].ctypes.data
    np.testing.assert_allclose(model.outputs(texts, ["hidden", "pooled"])["pooled"], before, atol=1e-6)
    (weight,) = (each for each in model.layer.parameters() if each.name == name)
    np.testing.assert_allclose(model.outputs(texts, ["pooled"])["pooled"], before, atol=1e-6)
    for factor in (0.5, 3.0):
        with paddle.no_grad():
            weight.set_value(weight * factor)
        _, pooled = model.layer(*map(paddle.to_tensor, model._batch(texts).values()))
        found = model.outputs(texts, ["pooled"])["pooled"]
        np.testing.assert_allclose(found, pooled.numpy(), atol=1e-5)
        assert np.abs(found - before).max() > 1e-3


def test_the_matrices_of_encoder_layers_are_packed() -> None:
    model, texts = model_and_texts()
    with patch.object(products, "SMALL", 1):
        model.outputs(texts, ["hidden"])
    assert len(model._forward._packed) == 6 * model._record.config.num_hidden_layers * blas.can_pack()


def test_bfloat16_rounds_weights_once_and_is_refused_where_it_would_be_slower() -> None:
    model, texts = model_and_texts("bfloat16")
    with patch.object(products, "no_bfloat16", return_value="no AMX"), pytest.raises(InputError, match="no AMX"):
        model.outputs(texts, ["hidden"])
    expected = model_and_texts()[0].outputs(texts, ["hidden"])["hidden"]
    with patch.object(products, "no_bfloat16", return_value=""), patch("ernie_gram.model.encoder.SMALL", 8):
        found = model.outputs(texts, ["hidden"])["hidden"]
    difference = np.abs(found - expected).max()
    assert 1e-4 < difference < 0.1
    with pytest.raises(InputError, match="precision"):
        Model.load("x", precision="float64")
