"""What a notebook shows of models and layers, single vectors of texts, and loading Paddle without its warnings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import paddle
import pytest

from ernie_gram.api import Model
from ernie_gram.distributed.ranks import World
from ernie_gram.export_inference import export_model
from ernie_gram.graph import static_mode
from reader.errors import InputError
from tests.ernie_gram.test_api import PAIRS, in_static, made
from tests.support.commands import python

TEXTS = ["ba be bi", ("ba", "bo bu ba be"), "bi"]


def test_models_are_shown_in_one_line(tmp_path: Path) -> None:
    record = made("explicit")
    in_static(export_model, record, "encoder", tmp_path / "e", World(0, 1, paddle.CPUPlace()))
    for model in (Model(record), Model.load(tmp_path / "e")):
        assert str(model.folder) in repr(model)
        assert len(repr(model)) < 100 + len(str(model.folder))
        assert "\n" not in repr(model)
        assert f"{len(model.tokenizer.vocabulary):,}" in repr(model)


def test_every_layer_with_parameters_shows_their_sizes() -> None:
    layer = Model(made("both", **PAIRS)).layer
    parts = layer.sublayers(include_self=True)
    sizes = [[f"{p.name} {list(p.shape)}" for p in part.parameters(include_sublayers=False)] for part in parts]
    with static_mode(paddle.static.Scope()):  # as in a program of one's own that has parameters of both modes
        for part, own in zip(parts, sizes, strict=True):
            assert all(size in repr(part) and size in repr(layer) for size in own)
    assert f"{layer.encoder.heads} heads" in repr(layer.encoder.layers[0].attention)


def test_single_vectors_are_one_array_in_the_order_of_the_texts(tmp_path: Path) -> None:
    record = made(None, **PAIRS)
    in_static(export_model, record, "encoder", tmp_path / "e", World(0, 1, paddle.CPUPlace()))
    for model in (Model(record), Model.load(tmp_path / "e")):
        each = model.encode(TEXTS)
        expected = {
            "mean": [one.hidden.mean(0) for one in each],
            "cls": [one.hidden[0] for one in each],
            "pooled": [one.pooled for one in each],
        }
        for name, vectors in expected.items():
            found = model.encode(TEXTS, batch_size=2, vectors=name)
            assert (found.shape, found.dtype) == ((3, 24), np.float32)
            np.testing.assert_allclose(found, vectors, atol=1e-5)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"^texts: "):
            model.encode([], vectors="mean")
        for wrong in ("median", ""):
            with pytest.raises(InputError, match=r"^vectors: "):
                model.encode(TEXTS, vectors=wrong)


def test_a_model_without_a_pooler_has_no_pooled_vector() -> None:
    with pytest.raises(InputError, match=r"^vectors: 'pooled'"):
        Model(made("explicit")).encode(["ba"], vectors="pooled")


def test_loading_paddle_warns_of_nothing() -> None:
    code = """if True:
        import warnings
        before = [*warnings.filters]
        from ernie_gram.distributed.loading import import_paddle
        import_paddle()
        assert warnings.filters == before
    """
    done = python("-W", "error::UserWarning", "-c", code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
