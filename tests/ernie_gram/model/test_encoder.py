"""The encoder against a forward pass in numpy, written from the definitions."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ernie_gram.model.config import ModelConfig
from tests.support import reference_model as reference
from tests.support.static_programs import run

SMALL = ModelConfig(
    hidden_size=24,
    num_hidden_layers=3,
    num_attention_heads=4,
    max_position_embeddings=128,
    out_emb_size=10,
    sent_type_vocab_size=3,
)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"use_relative_position": False},
        {"use_sentence_embedding": True},
        {"emb_size": 12, "use_sentence_embedding": True, "use_relative_position": False},
    ],
)
def test_encoder_is_the_reference(change: dict[str, object]) -> None:
    from ernie_gram.model.encoder import Encoder

    config = dataclasses.replace(SMALL, **change)  # type: ignore[arg-type]
    random = np.random.default_rng(3)
    lengths = np.array([100, 7, 2], np.int64)
    ids = random.integers(0, 50, (3, 100))
    sentences = random.integers(0, 3, (3, 100))

    def build(feeds: dict) -> list:
        encoder = Encoder(config, 50)
        encoder.eval()
        return [encoder(feeds["ids"], feeds["lengths"], feeds["sentences"])[0]]

    (hidden,), p = run(build, {"ids": ids, "lengths": lengths, "sentences": sentences})
    hidden = hidden.reshape(3, 100, -1)
    for row, length in enumerate(lengths):
        words = p["word_embedding"][ids[row, :length]]
        expected, _ = reference.encode(config, p, words.astype(np.float64), sentences[row, :length], [])
        np.testing.assert_allclose(hidden[row, :length], expected, atol=1e-5)


def test_padding_changes_nothing() -> None:
    from ernie_gram.model.encoder import Encoder

    def build(feeds: dict) -> list:
        encoder = Encoder(SMALL, 50)
        encoder.eval()
        return [encoder(feeds["ids"], feeds["lengths"])[0]]

    ids = np.random.default_rng(1).integers(0, 50, (2, 40))
    other = ids.copy()
    other[:, 30:] = 9
    lengths = np.array([30, 11], np.int64)
    other[1, 11:] = 4
    first, second, short = (
        run(build, {"ids": value, "lengths": lengths})[0][0].reshape(2, -1, 24) for value in (ids, other, ids[:, :30])
    )
    for row, length in enumerate(lengths):
        assert np.array_equal(first[row, :length], second[row, :length])
        np.testing.assert_allclose(first[row, :length], short[row, :length], atol=1e-6)


@pytest.mark.parametrize("length", [1, 2, 9, 200])
def test_bucket_table(length: int) -> None:
    import paddle

    from ernie_gram.model.relative_position import relative_buckets

    (table,), _ = run(lambda feeds: [relative_buckets(paddle.shape(feeds["x"])[0])], {"x": np.zeros(length, "float32")})
    assert table.tolist() == [[reference.bucket(q, k) for k in range(length)] for q in range(length)]


def test_dropout_is_on_in_training_only() -> None:
    from ernie_gram.model.encoder import Encoder

    ids = np.arange(20).reshape(2, 10)

    def outputs(train: bool) -> np.ndarray:
        def build(feeds: dict) -> list:
            encoder = Encoder(SMALL, 50)
            encoder.train() if train else encoder.eval()
            return [encoder(feeds["ids"], feeds["lengths"])[0]]

        return run(build, {"ids": ids, "lengths": np.array([10, 10])})[0][0]

    assert np.array_equal(outputs(False), outputs(False))
    assert not np.allclose(outputs(True), outputs(False), atol=1e-2)


def test_start_values_are_cut_off_at_two_standard_deviations() -> None:
    import paddle

    from ernie_gram.model.layers import Embedding
    from tests.support.static_programs import fresh_scope

    with fresh_scope() as executor:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
            Embedding("t", 300, 300, 0.02)
        executor.run(startup)
        values = np.array(paddle.static.global_scope().find_var("t").get_tensor())
    assert 0.039 < np.abs(values).max() <= 0.04 + 1e-7
    assert abs(values.std() / 0.02 - 0.88) < 0.01  # of a normal cut off at two
    assert abs(values.mean()) < 3e-4
