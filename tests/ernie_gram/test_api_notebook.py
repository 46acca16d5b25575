"""What a notebook shows of models and layers, single vectors of texts, and loading Paddle without its warnings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import paddle
import pytest

from ernie_gram.api import Model
from ernie_gram.distributed.ranks import World
from ernie_gram.export_inference import export_model
from reader.errors import InputError
from tests.ernie_gram.test_api import PAIRS, in_static, made

TEXTS = ["ba be bi", ("ba", "bo bu ba be"), "bi"]


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
        with pytest.raises(InputError, match=r"^vectors: "):
            model.encode(TEXTS, vectors="median")
    with pytest.raises(InputError, match=r"^vectors: 'pooled'"):
        Model(made("explicit")).encode(["ba"], vectors="pooled")
