"""Arguments of the Python interface that a model cannot take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ernie_gram.api import Model
from reader.errors import InputError
from tests.support.data_frames import FRAMES
from tests.support.exported_models import random_model


def test_a_pair_needs_two_sentence_types() -> None:
    model = Model(random_model("explicit", sent_type_vocab_size=1, use_sentence_embedding=True))
    assert len(model.encode(["ba"])) == 1
    with pytest.raises(InputError, match=r"^texts\[1\]: a pair"):
        model.encode(["ba", ("ba", "be")])
    with pytest.raises(InputError, match=r"^a pair"):
        model.attention(("ba", "be"))


def test_numbers_must_be_whole_and_positive() -> None:
    model = Model(random_model("explicit"))
    sizes: list[Any] = [0, 1.5, "3", None, True, [1, 2]]
    for size in sizes:
        with pytest.raises(InputError, match=r"^batch_size: "):
            model.encode(["ba", ""], batch_size=size)
        with pytest.raises(InputError, match=r"^top: "):
            model.fill_mask("[MASK]", top=size)
    assert len(model.encode(["ba", "be"], batch_size=np.int64(1))) == 2  # type: ignore[arg-type]


def test_what_is_no_list_of_texts_or_pairs_is_refused() -> None:
    model, frames = Model(random_model("explicit")), [frame({"ba": ["be"]}) for frame in FRAMES]
    wrong: list[Any] = [("ba", "be", "bi"), ("ba",), 3, None, b"ba", {"ba": "be"}, Path("ba"), *frames]
    for texts in ("ba be", *wrong[2:]):
        for door in (model.encode, model.batch):
            with pytest.raises(InputError, match=r"^texts: "):
                door(texts)
    assert model.encode([]) == []
    with pytest.raises(InputError, match=r"^texts: must have at least one text"):
        model.batch([])
    for text in wrong:
        with pytest.raises(InputError, match=r"^texts\[1\]: expected a text or a pair of texts, not "):
            model.batch(["ba", text])
        with pytest.raises(InputError, match=r"^expected a text or a pair of texts, not "):
            model.attention(text)
        with pytest.raises(InputError, match=r"^text is "):
            model.fill_mask(text)
    with pytest.raises(InputError, match=r"^texts\[1\]: text_b is not a text but 3$"):
        model.encode(["ba", ("ba", 3)])  # type: ignore[list-item]


@pytest.mark.parametrize("empty", ["", " \n\u3000", "\u200b", "\u0301", "\x00", "\ufffd"])
def test_an_empty_text_is_refused_in_every_door(empty: str) -> None:
    model = Model(random_model("explicit"))
    for encode in (model.encode, model.batch):
        with pytest.raises(InputError, match=r"^texts\[1\]: "):
            encode(["ba", empty])
    for call in (model.attention, model.fill_mask):
        with pytest.raises(InputError, match=r"^text "):
            call(empty)
    for pair, name in (((empty, "ba"), "text_a"), (("ba", empty), "text_b")):
        with pytest.raises(InputError, match=rf"^{name} "):
            model.texts.encode(pair)
