"""Arguments of the Python interface that a model cannot take."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from ernie_gram.api import Model
from reader.errors import InputError
from tests.ernie_gram.test_api import made


def test_a_pair_needs_two_sentence_types() -> None:
    model = Model(made("explicit", sent_type_vocab_size=1, use_sentence_embedding=True))
    assert len(model.encode(["ba"])) == 1
    with pytest.raises(InputError, match=r"^texts\[1\]: a pair of texts, but .* has one sentence type"):
        model.encode(["ba", ("ba", "be")])
    with pytest.raises(InputError, match=r"^a pair of texts, but .* has one sentence type"):
        model.attention(("ba", "be"))


def test_numbers_must_be_whole_and_positive() -> None:
    model, one = Model(made("explicit")), np.int64(1)
    sizes: list[Any] = [0, 1.5, "3", None, True, [1, 2]]
    for size in sizes:
        with pytest.raises(InputError, match=rf"^batch_size: {re.escape(repr(size))}: give a whole number from 1$"):
            model.encode(["ba", ""], batch_size=size)
    assert len(model.encode(["ba", "be"], batch_size=one)) == 2  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^top: 2\.0: give a whole number from 1$"):
        model.fill_mask("[MASK]", top=2.0)  # type: ignore[arg-type]
