"""The encoder and the heads against a forward pass in numpy, written from the definitions."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.special import erf, log_softmax, softmax

from ernie_gram.config import ModelConfig
from tests.static import Arrays, run

SMALL = ModelConfig(
    hidden_size=24,
    num_hidden_layers=3,
    num_attention_heads=4,
    max_position_embeddings=128,
    out_emb_size=10,
    sent_type_vocab_size=3,
)

# |n| -> bucket, spelt out range by range.
RANGES = [(8, 11, 8), (12, 15, 9), (16, 22, 10), (23, 31, 11), (32, 45, 12), (46, 63, 13), (64, 90, 14)]


def bucket(query: int, key: int) -> int:
    """The bucket of one pair of slots, from the written list."""
    if query == 0:
        return 16
    if key == 0:
        return 32
    distance = abs(key - query)
    exact = distance if distance <= 7 else 15
    for first, last, number in RANGES:
        if first <= distance <= last:
            exact = number
    return exact + 16 * (key < query)


def norm(x: np.ndarray, p: Arrays, name: str) -> np.ndarray:
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * p[f"{name}_scale"] + p[f"{name}_bias"]


def linear(x: np.ndarray, p: Arrays, name: str) -> np.ndarray:
    return x @ p[f"{name}.w_0"] + p[f"{name}.b_0"]


def gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + erf(x / np.sqrt(2)))


def reference_encoder(config: ModelConfig, p: Arrays, ids: np.ndarray, sentences: np.ndarray) -> np.ndarray:
    """One sequence without padding, int [L] each; returns [L, H]. float64 throughout."""
    p = {name: value.astype(np.float64) for name, value in p.items()}
    length, heads = len(ids), config.num_attention_heads
    x = p["word_embedding"][ids] + p["pos_embedding"][:length]
    if config.use_sentence_embedding:
        x = x + p["sent_embedding"][sentences]
    x = norm(x, p, "pre_encoder_layer_norm")
    if config.embedding_size != config.hidden_size:
        x = x @ p["emb_hidden_mapping"] + p["emb_hidden_mapping_bias"]
    size = config.hidden_size // heads
    for i in range(config.num_hidden_layers):
        name = f"encoder_layer_{i}"
        query, key, value = (linear(x, p, f"{name}_multi_head_att_{part}_fc") for part in ("query", "key", "value"))
        context = np.zeros_like(x)
        for head in range(heads):
            cut = slice(head * size, (head + 1) * size)
            scores = query[:, cut] @ key[:, cut].T / np.sqrt(size)
            if config.use_relative_position:
                for q in range(length):
                    for k in range(length):
                        scores[q, k] += p["rel_pos_embedding"][bucket(q, k), head]
            context[:, cut] = softmax(scores, -1) @ value[:, cut]
        x = norm(x + linear(context, p, f"{name}_multi_head_att_output_fc"), p, f"{name}_post_att_layer_norm")
        fed = linear(gelu(linear(x, p, f"{name}_ffn_fc_0")), p, f"{name}_ffn_fc_1")
        x = norm(x + fed, p, f"{name}_post_ffn_layer_norm")
    return x


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
    from ernie_gram.encoder import Encoder

    config = dataclasses.replace(SMALL, **change)  # type: ignore[arg-type]
    random = np.random.default_rng(3)
    lengths = np.array([100, 7, 2], np.int64)
    ids = random.integers(0, 50, (3, 100))
    sentences = random.integers(0, 3, (3, 100))

    def build(feeds: dict) -> list:
        encoder = Encoder(config, 50)
        encoder.eval()
        return [encoder(feeds["ids"], feeds["lengths"], feeds["sentences"])]

    (hidden,), p = run(build, {"ids": ids, "lengths": lengths, "sentences": sentences})
    hidden = hidden.reshape(3, 100, -1)
    for row, length in enumerate(lengths):
        expected = reference_encoder(config, p, ids[row, :length], sentences[row, :length])
        np.testing.assert_allclose(hidden[row, :length], expected, atol=1e-5)


def test_padding_changes_nothing() -> None:
    from ernie_gram.encoder import Encoder

    def build(feeds: dict) -> list:
        encoder = Encoder(SMALL, 50)
        encoder.eval()
        return [encoder(feeds["ids"], feeds["lengths"])]

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

    from ernie_gram.relative_position import relative_buckets

    (table,), _ = run(lambda feeds: [relative_buckets(paddle.shape(feeds["x"])[0])], {"x": np.zeros(length, "float32")})
    assert table.tolist() == [[bucket(q, k) for k in range(length)] for q in range(length)]


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("explicit", [True, False])
def test_heads_and_loss_are_the_reference(tied: bool, explicit: bool) -> None:
    from ernie_gram.config import ObjectiveConfig
    from ernie_gram.model import PretrainModel, Sizes
    from ernie_gram.objectives import terms_of

    config = dataclasses.replace(SMALL, out_emb_size=0 if tied else 10, emb_size=12, vocab_size=55)
    (term,) = terms_of(ObjectiveConfig("explicit" if explicit else "contiguous"))
    tokens, ngrams = 50, 20
    classes = tokens + (ngrams if explicit else 0)
    random = np.random.default_rng(5)
    slots, labels = random.integers(0, 30, 8), random.integers(0, classes, 8)
    hidden = random.standard_normal((30, 24)).astype("float32")

    def build(feeds: dict) -> list:
        model = PretrainModel(config, Sizes(tokens, ngrams), explicit)
        rows = term.rows(model, feeds["hidden"], feeds)
        return [rows.loss, rows.scores]

    (loss, scores), p = run(build, {"hidden": hidden, "slots": slots, term.labels.name: labels})
    x = gelu(linear(hidden[slots].astype(np.float64), p, "mask_lm_trans_fc"))
    if tied:
        table = p["word_embedding"][:tokens]
        if explicit:
            table = np.concatenate([table, p["ngram_embedding"]])
        x = norm(x, p, "mask_lm_trans_layer_norm")
    else:
        table = p["mask_lm_out_embedding"]
    expected = x @ table.T + p["mask_lm_out_fc.b_0"]
    assert scores.shape == (8, classes)
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    np.testing.assert_allclose(loss, -log_softmax(expected, -1)[np.arange(8), labels], atol=1e-5)


def test_dropout_is_on_in_training_only() -> None:
    from ernie_gram.encoder import Encoder

    ids = np.arange(20).reshape(2, 10)

    def outputs(train: bool) -> np.ndarray:
        def build(feeds: dict) -> list:
            encoder = Encoder(SMALL, 50)
            encoder.train() if train else encoder.eval()
            return [encoder(feeds["ids"], feeds["lengths"])]

        return run(build, {"ids": ids, "lengths": np.array([10, 10])})[0][0]

    assert np.array_equal(outputs(False), outputs(False))
    assert not np.allclose(outputs(True), outputs(False), atol=1e-2)


def test_start_values_are_cut_off_at_two_standard_deviations() -> None:
    import paddle

    from ernie_gram.layers import Table
    from tests.static import fresh_scope

    with fresh_scope() as executor:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
            Table("t", 300, 300, 0.02)
        executor.run(startup)
        values = np.array(paddle.static.global_scope().find_var("t").get_tensor())
    assert 0.039 < np.abs(values).max() <= 0.04 + 1e-7
    assert abs(values.std() / 0.02 - 0.88) < 0.01  # of a normal cut off at two
    assert abs(values.mean()) < 3e-4
