"""Models for Python code: equal to the static programs with gradients, trainable, and without a trace in the caller."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest

from ernie_gram import graph
from ernie_gram.api import Model
from ernie_gram.eager import load_layer
from ernie_gram.graph import static_mode
from ernie_gram.pretraining.chunked_softmax import all_logits
from ernie_gram.pretraining.network import PretrainModel, build_prediction
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.training.program import open_program
from ernie_gram.training.variables import set_parameters
from reader.batches import fields
from reader.errors import InputError
from tests.support import reference_model
from tests.support.data_frames import FRAMES
from tests.support.exported_models import random_model, random_sentence, run_with_executor
from tests.support.model_folders import random_ids
from tests.support.small_model import NGRAMS, TOKENS, config_of

SIZES = CorpusSizes(TOKENS, NGRAMS)
PAIRS = {"use_sentence_embedding": True, "use_pooler": True, "use_relative_position": True}

pytestmark = pytest.mark.usefixtures("dynamic_mode")


def tensors(*arrays: np.ndarray) -> list[paddle.Tensor]:
    return [paddle.to_tensor(array) for array in arrays]


def in_static(function, *arguments, **keywords):  # type: ignore[no-untyped-def]
    """Return what a function of the static mode returns, with a scope of its own."""
    with static_mode(paddle.static.Scope()):
        return function(*arguments, **keywords)


@pytest.mark.parametrize("rung", ["explicit", "both"])
def test_logits_over_units_and_all_gradients_equal_those_of_the_static_program(rung: str) -> None:
    record, rng = random_model(rung), np.random.default_rng(5)
    config = config_of(rung, record.config)
    ids, lengths, _ = random_ids()
    slots = np.array([2, 5, 14])
    weights = rng.standard_normal((3, TOKENS + NGRAMS)).astype(np.float32)

    def static() -> list[np.ndarray]:
        with open_program([fields.INPUT_IDS, fields.LENGTHS, fields.SLOTS], portable=True) as opened:
            model = PretrainModel(config, SIZES)
            model.eval()
            rows, _ = model.encoder(opened.feeds["input_ids"], opened.feeds["lengths"])
            logits = all_logits(model.head(paddle.gather(rows, opened.feeds["slots"])))
            loss = (logits * paddle.assign(weights)).sum()
            parameters = opened.main.global_block().all_parameters()
            gradients = paddle.static.gradients([loss], parameters)
            names.extend(p.name for p, g in zip(parameters, gradients, strict=True) if g is not None)
            wanted = [logits, *(gradient for gradient in gradients if gradient is not None)]
        set_parameters(opened.main, record.parameters, "test", paddle.CPUPlace())
        feed = {"input_ids": ids, "lengths": lengths, "slots": slots}
        return paddle.static.Executor(paddle.CPUPlace()).run(opened.main, feed=feed, fetch_list=wanted)

    names: list[str] = []
    expected, *gradients = in_static(static)
    layer = load_layer(record)
    hidden, _ = layer(*tensors(ids, lengths))
    logits = layer.unit_logits(paddle.gather(hidden.flatten(0, 1), paddle.to_tensor(slots)))
    (logits * paddle.to_tensor(weights)).sum().backward()
    np.testing.assert_allclose(logits.numpy(), expected, atol=1e-6, rtol=1e-6)
    found = {p.name: p.grad.numpy() for p in layer.parameters() if p.grad is not None}
    assert set(names) == found.keys() >= {"rel_pos_embedding", "word_embedding", "mask_lm_out_fc.b_0"}
    for name, gradient in zip(names, gradients, strict=True):
        scale = np.abs(gradient).max()
        np.testing.assert_allclose(found[name], gradient, atol=1e-6 * max(1.0, scale), err_msg=name)


@pytest.mark.parametrize("rung", ["contiguous", "explicit", "both"])
def test_masks_are_filled_with_the_probabilities_of_the_static_program(rung: str) -> None:
    record, random = random_model(rung), np.random.default_rng(1)
    model = Model(record)
    batch = model.texts.masked_batch([model.texts.encode_masked(random_sentence(random, 9, masks)) for masks in (2, 1)])
    sizes = CorpusSizes(TOKENS, NGRAMS if record.lexicon else 0)
    before = paddle.get_rng_state()[0].current_seed()
    found = model.probabilities(batch, draws=2)
    assert paddle.get_rng_state()[0].current_seed() == before

    def static() -> np.ndarray:
        program = build_prediction(config_of(rung, record.config), sizes)
        drawn = [run_with_executor(program, record, batch, seed)["probabilities"] for seed in range(2)]
        return np.mean(drawn, axis=0)

    np.testing.assert_allclose(found, in_static(static), atol=1e-6)
    assert (model.has_ngrams, model.has_generator) == (rung != "contiguous", rung == "both")


def test_texts_and_pairs_get_vectors_and_offsets() -> None:
    model = Model(random_model(None, **PAIRS))
    first, pair, last = model.encode(["ba be  bi", ("Ba", "be bo"), "ba"])
    assert first.tokens == ["[CLS]", "ba", "be", "bi", "[SEP]"]
    assert first.offsets == [None, (0, 2), (3, 5), (7, 9), None]
    assert pair.offsets == [None, (0, 2), None, (0, 2), (3, 5), None]
    assert pair.sentence_ids.tolist() == [0, 0, 0, 1, 1, 1]
    assert [each.hidden.shape for each in (first, pair, last)] == [(5, 24), (6, 24), (3, 24)]
    assert len(model.encode(["ba " * 99], truncate=True)[0].tokens) == 64
    for text, message in (("", r"texts\[1\]: text is empty"), ("ba " * 99, r"texts\[1\]: 101 tokens, but")):
        with pytest.raises(InputError, match=message):
            model.encode(["ba", text])
    with pytest.raises(InputError, match="has no prediction heads"):
        model.fill_mask("[MASK]")


@pytest.mark.parametrize("has_relative_position", [True, False])
@pytest.mark.parametrize("text", ["ba be bi bo bu da de di do du", ("ba be bi", "de da")])
def test_attention_weights_equal_the_reference(text: str | tuple[str, str], has_relative_position: bool) -> None:
    record = random_model(None, **PAIRS | {"use_relative_position": has_relative_position})
    parameters = {name: values.astype(np.float64) for name, values in record.parameters.items()}
    model = Model(record)
    encoded = model.texts.encode((text,) if isinstance(text, str) else text)
    words, weights = parameters["word_embedding"][encoded.ids], list[np.ndarray]()
    reference_model.encode(record.config, parameters, words, encoded.sentence_ids, [], weights=weights)
    model.layer.train()
    found = model.attention(text)
    assert model.layer.training
    assert (len(found.tokens), found.tokens[0], found.tokens[-1]) == (len(encoded), "[CLS]", "[SEP]")
    assert found.offsets == encoded.offsets
    layers, heads = record.config.num_hidden_layers, record.config.num_attention_heads
    np.testing.assert_allclose(found.weights, np.reshape(weights, [layers, heads, *[len(encoded)] * 2]), atol=1e-6)
    # Nothing stays in the layer: the second call returns one map of each layer, too.
    np.testing.assert_array_equal(model.attention(text).weights, found.weights)
    assert model.attention("ba " * 99, truncate=True).weights.shape[-2:] == (64, 64)
    with pytest.raises(InputError, match="101 tokens"):
        model.attention("ba " * 99)


def test_a_layer_draws_no_numbers_and_two_models_share_nothing() -> None:
    record = random_model("both")
    paddle.seed(3)
    expected = paddle.rand([4]).numpy()
    paddle.seed(3)
    one, other = load_layer(record), load_layer(record)
    np.testing.assert_array_equal(paddle.rand([4]).numpy(), expected)
    parameter = one.encoder.embeddings.word.weight
    with paddle.no_grad():
        parameter.set_value(parameter * 0)
    assert float(other.encoder.embeddings.word.weight.abs().sum()) > 0
    missing = {name: values for name, values in record.parameters.items() if name != "rel_pos_embedding"}
    with pytest.raises(InputError, match="parameter rel_pos_embedding is missing"):
        load_layer(replace(record, parameters=missing))


def test_the_mode_and_the_recorded_gradients_of_the_caller_survive_an_error_in_static_mode() -> None:
    x = paddle.to_tensor([3.0], stop_gradient=False)
    with pytest.raises(ZeroDivisionError, match="False"), static_mode(paddle.static.Scope()):
        raise ZeroDivisionError(paddle.in_dynamic_mode())
    model, y = Model(random_model("both")), x * x
    with static_mode(paddle.static.Scope()):
        assert model.encode(["ba"])[0].hidden.shape == (3, 24)
        assert len(model.fill_mask("ba [MASK]", draws=1)[0]) == 5
        assert not paddle.in_dynamic_mode()
    y.backward()
    assert x.grad.item() == 6.0


def test_casts_in_dynamic_mode_keep_no_tensors() -> None:
    casts = graph._current[-1].casts
    kept = len(casts._made)
    # As in mixed precision of the caller, where products are bfloat16.
    assert graph.for_product(paddle.ones([2], "bfloat16")).dtype == paddle.float32
    assert len(casts._made) == kept


TEXTS = ["ba be bi", ("ba", "bo bu ba be"), "bi"]


def test_single_vectors_are_one_array_in_the_order_of_the_texts() -> None:
    model = Model(random_model(None, **PAIRS))
    assert str(model.folder) in repr(model)
    assert len(repr(model)) < 100 + len(str(model.folder))
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
        Model(random_model("explicit")).encode(["ba"], vectors="pooled")


def test_the_network_is_saved_and_trained_as_a_static_program(tmp_path: Path) -> None:
    """With `paddle.jit`; gradients too."""
    record = random_model(None, **PAIRS)
    inputs = [paddle.to_tensor(array) for array in Model(record).batch(TEXTS).values()]
    one, other = Model(record).layer, Model(record).layer
    expected = one(*inputs)
    kinds = [paddle.static.InputSpec([None] * each.ndim, "int64") for each in inputs]
    paddle.jit.save(one, str(tmp_path / "network"), input_spec=kinds)
    for found in (paddle.jit.load(str(tmp_path / "network")), paddle.jit.to_static(other, full_graph=True)):
        for values, wanted in zip(found(*inputs), expected, strict=True):
            np.testing.assert_allclose(values.numpy(), wanted.numpy(), atol=1e-6)
    other.train()
    for layer in (one, other):
        layer(*inputs)[1].square().sum().backward()
    for parameter, wanted in zip(other.parameters(), one.parameters(), strict=True):
        np.testing.assert_allclose(parameter.grad.numpy(), wanted.grad.numpy(), atol=1e-6, err_msg=wanted.name)


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
