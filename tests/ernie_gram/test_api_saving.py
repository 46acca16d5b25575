"""What `Model.save` writes: the scores and the parameters of a model whose layer was changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import paddle
import pytest

from ernie_gram import Model
from ernie_gram.formats.model import Model as Record
from ernie_gram.formats.model import TrainingRecord
from ernie_gram.formats.registry import read_model
from reader.errors import InputError
from tests.support.exported_models import random_model
from tests.support.small_model import TOKENS


def made() -> Record:
    """Return a random model; making it switches to static mode."""
    record = random_model("explicit", vocab_size=TOKENS)
    paddle.disable_static()
    return record


def test_a_saved_model_has_the_scores_of_its_parameters_only(tmp_path: Path) -> None:
    training = TrainingRecord(scores={"perplexity": 118.0})
    for name, is_changed in (("same", False), ("changed", True)):
        model = Model(replace(made(), training=training))
        weight = model.layer.encoder.embeddings.word.weight
        with paddle.no_grad():
            weight.set_value(weight * (0.5 if is_changed else 1.0))
        model.save(tmp_path / name)
        saved = read_model(tmp_path / name).training
        assert saved is not None
        assert saved.scores == ({} if is_changed else training.scores)
        assert ("118" in (tmp_path / name / "README.md").read_text()) != is_changed


def test_parameters_are_saved_in_float32_and_only_if_they_are_finite(tmp_path: Path) -> None:
    model = Model(made())
    model.layer.to(dtype="bfloat16")
    expected = {parameter.name: parameter.astype("float32").numpy() for parameter in model.layer.parameters()}
    paddle.enable_static()
    try:
        model.save(tmp_path / "model")
    finally:
        paddle.disable_static()
    found = read_model(tmp_path / "model").parameters
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)
    weight = model.layer.encoder.embeddings.word.weight
    with paddle.no_grad():
        weight.set_value(weight * float("nan"))
    with pytest.raises(InputError, match="layer: word_embedding holds numbers that are not finite"):
        model.save(tmp_path / "nan")
    assert not (tmp_path / "nan").exists()
