"""Batches of every kind have the fields that it names; losses and heads against numpy, with random parameters."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy.special import erf, log_softmax

from ernie_gram.model.encoder import Encoder
from ernie_gram.model.parameters import encoder as declare_encoder
from reader.batches.fields import Batch
from tasks.kinds.catalog import KINDS, kind_of
from tasks.kinds.multiple_choice import MultipleChoiceExample
from tasks.kinds.sentences import SentenceExample
from tasks.kinds.settings import HeadSettings, KindSettings
from tasks.kinds.span_answers import Answer, SpanExample
from tasks.kinds.tagging import TaggingExample
from tasks.layouts.rows import CharSpan
from tasks.registry import TASKS
from tasks.training.network import TaskNetwork, head_class
from tests.support.further_cases import only
from tests.support.own_tasks import KNOWN
from tests.support.static_programs import Arrays, fresh_program, run
from tests.tasks.kinds.tiny import MODEL, PLACE, TOKENS, tokenizer

HEAD = HeadSettings(dropout=0.0)
EXAMPLES: dict[str, tuple[str, Any]] = {
    "classification": ("rte", [SentenceExample("0", "a b", "c", "entailment", PLACE)]),
    "multi_label": ("moods", [SentenceExample("0", "a b", "c", ("calm", "sad"), PLACE)]),
    "regression": ("stsb", [SentenceExample("0", "a", "c", 2.5, PLACE)]),
    "multiple_choice": ("race", [MultipleChoiceExample("high0", "a", "b", ("c", "d", "e"), 1, PLACE)]),
    "span": ("squad1", [SpanExample("0", "a b", "c", (Answer("b", CharSpan(2, 3)),), False, PLACE)]),
    "tagging": ("conll2003", [TaggingExample("0", ("a", "b"), " ", ("O", "O"), (), PLACE)]),
}


def losses_of(kind: str, scores: np.ndarray, fields: Arrays) -> dict[str, tuple]:
    """Return name -> (weight, total, count) of the loss terms of some scores."""
    found: list[Any] = []

    def build(feeds: dict[str, Any]) -> list[Any]:
        of_task = kind_of(KNOWN[EXAMPLES[kind][0]], KindSettings(head=HEAD))
        found.extend(head_class(of_task)(of_task, MODEL, False).losses(feeds["scores"], feeds))
        return [value for term in found for value in (term.total, term.count)]

    values, _ = run(build, {"scores": scores.astype(np.float32), **fields})
    return {term.name: (term.weight, float(values[2 * i]), float(values[2 * i + 1])) for i, term in enumerate(found)}


def test_losses_of_options_spans_labels_scores_and_tags_are_those_of_numpy() -> None:
    scores = np.random.default_rng(1).standard_normal((5, 1))
    fields = {
        "option_rows": np.array([[0, 1, 2], [3, 4, 0]]),
        "option_counts": np.array([3, 2]),
        "labels": np.array([2, 0]),
    }
    first, second = scores[:3, 0], scores[3:, 0]
    expected = -(log_softmax(first)[2] + log_softmax(second)[0])
    assert losses_of("multiple_choice", scores, fields) == {
        "cross_entropy": (1.0, pytest.approx(expected, rel=1e-5), 2)
    }
    scores = np.random.default_rng(2).standard_normal((2, 6, 2))
    fields = {
        "input_ids": np.zeros((2, 6), np.int64),
        "lengths": np.array([6, 4]),
        "start_slots": np.array([3, 0]),
        "end_slots": np.array([5, 0]),
    }
    expected = 0.0
    for row, length in enumerate((6, 4)):
        for column, name in enumerate(("start_slots", "end_slots")):
            expected -= log_softmax(scores[row, :length, column])[fields[name][row]] / 2
    found = losses_of("span", scores.reshape(12, 2), fields)
    assert found == {"cross_entropy": (1.0, pytest.approx(expected, rel=1e-5), 2)}
    scores = np.random.default_rng(3).standard_normal((3, 4))
    labels = np.array([1, 3, 0])
    expected = -sum(log_softmax(row)[label] for row, label in zip(scores, labels, strict=True))
    for kind, name in (("classification", "labels"), ("tagging", "tags")):
        found = losses_of(kind, scores, {name: labels})
        assert found == {"cross_entropy": (1.0, pytest.approx(expected, rel=1e-5), 3)}
    label_sets = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]], np.float32)
    signs = np.where(label_sets == 1, 1, -1)
    found = losses_of("multi_label", scores, {"label_sets": label_sets})
    expected = np.log1p(np.exp(-signs * scores)).mean(1).sum()
    assert found == {"sigmoid_cross_entropy": (1.0, pytest.approx(expected, rel=1e-5), 3)}
    gold = np.array([1.5, -2.0, 3.0], np.float32)
    found = losses_of("regression", scores[:, :1], {"gold_scores": gold})
    assert found["squared_error"] == (1.0, pytest.approx(((scores[:, 0] - gold) ** 2).sum(), rel=1e-5), 3)


@pytest.mark.parametrize("name", KINDS)
def test_batches_have_the_names_shapes_and_dtypes_of_the_fields_and_the_rows_of_the_loss(name: str) -> None:
    task, examples = EXAMPLES[name]
    kind = kind_of(KNOWN[task], KindSettings())
    features, predicted = (kind.encode(examples * 3, tokenizer(), training) for training in (True, False))
    for samples in (np.array([2, 0]), np.zeros(0, np.int64)):
        batch = features.batch(samples)
        assert batch.keys() == {field.name for field in kind.training_fields}
        fields = {field.name: field for field in (*kind.input_fields, *kind.training_fields)}
        batch |= predicted.batch(samples)
        assert batch.keys() == fields.keys()
        sizes: dict[str, int] = {}
        for key, values in batch.items():
            field = fields[key]
            assert values.dtype == field.dtype, key
            assert values.ndim == len(field.shape), key
            for letter, size in zip(field.shape, values.shape, strict=True):
                assert sizes.setdefault(letter, size) == size, key
        if "S" in sizes:
            assert sizes["S"] == len(samples)
    batch = features.batch(np.arange(3))
    rows = {"span": batch["input_ids"].size, "multiple_choice": 9, "tagging": 6}.get(name, 3)
    losses = losses_of(name, np.zeros((rows, kind.width)), batch)
    # One term for each row of the gold values: training counts these rows.
    assert [count for _, _, count in losses.values()] == [len(batch[kind.training_fields[-1].name])]


def scores_and_rows(kind: Any, batch: Batch, has_lm_transform: bool) -> tuple[np.ndarray, np.ndarray, Arrays]:
    """Return the scores of a batch, the encoder's rows [B, L, H], and the parameters."""
    network = TaskNetwork(kind, MODEL, has_lm_transform)

    def build(feeds: dict[str, Any]) -> list[Any]:
        encoder = Encoder(declare_encoder(MODEL, len(TOKENS)), MODEL)
        encoder.eval()
        rows, _ = encoder(feeds["input_ids"], feeds["lengths"], feeds["sentence_ids"])
        return [network.scores(feeds), rows]

    feeds = {field.name: batch[field.name] for field in kind.input_fields}
    (scores, rows), parameters = run(build, feeds)
    return scores, rows.reshape(*batch["input_ids"].shape, -1), parameters


@pytest.mark.parametrize("name", only(["tagging"], ["classification", "tagging"]))
def test_dropout_in_the_encoder_and_before_the_output_layer_is_for_training_only(name: str) -> None:
    task, examples = EXAMPLES[name]

    def computed(rate: float, hidden: float) -> tuple[float, np.ndarray]:
        kind = kind_of(TASKS[task], KindSettings(head=HeadSettings(dropout=rate)))
        batch = kind.encode(examples * 3, tokenizer(), training=True).batch(np.arange(3))
        network = TaskNetwork(kind, dataclasses.replace(MODEL, hidden_dropout_prob=hidden), False)
        [total], _ = run(lambda feeds: [term.total for term in network.losses(feeds)], batch)
        [scores], _ = run(lambda feeds: [network.scores(feeds)], {f.name: batch[f.name] for f in kind.input_fields})
        return float(total), scores

    loss, scores = computed(0.0, 0.0)
    for other, same in (computed(0.5, 0.0), computed(0.0, 0.5)):
        assert other != pytest.approx(loss, rel=1e-3)
        np.testing.assert_array_equal(same, scores)


@pytest.mark.parametrize("sentence_output", ["pooled", "cls"])
def test_scores_of_sentences_are_those_of_numpy(sentence_output: Any) -> None:
    kind = kind_of(TASKS["mnli"], KindSettings(head=HeadSettings(sentence_output)))
    examples = [SentenceExample(str(i), "a b c"[: 2 * i + 1], "d", None, PLACE) for i in range(3)]
    batch = kind.encode(examples, tokenizer(), training=False).batch(np.arange(3))
    scores, rows, parameters = scores_and_rows(kind, batch, has_lm_transform=True)
    vectors = rows[:, 0]
    if sentence_output == "pooled":
        vectors = np.tanh(vectors @ parameters["pooled_fc.w_0"] + parameters["pooled_fc.b_0"])
    expected = vectors @ parameters["cls_out_w"] + parameters["cls_out_b"]
    np.testing.assert_allclose(scores, expected, atol=1e-5)


@pytest.mark.parametrize(("has_lm_transform", "lm_transform"), [(True, True), (True, False), (False, True)])
def test_scores_of_slots_are_those_of_numpy(has_lm_transform: bool, lm_transform: bool) -> None:
    kind = kind_of(TASKS["squad1"], KindSettings(head=HeadSettings(lm_transform=lm_transform)))
    examples = [SpanExample(str(i), "a b c d", "e f"[: 2 * i + 1], None, None, PLACE) for i in range(2)]
    batch = kind.encode(examples, tokenizer(), training=False).batch(np.arange(2))
    scores, rows, parameters = scores_and_rows(kind, batch, has_lm_transform)
    selected = rows.reshape(-1, MODEL.hidden_size)[batch["slots"]]
    assert len(selected) == 10
    if has_lm_transform and lm_transform:
        x = selected @ parameters["mask_lm_trans_fc.w_0"] + parameters["mask_lm_trans_fc.b_0"]
        assert x.shape[1] == MODEL.out_emb_size
        selected = x * 0.5 * (1 + erf(x / np.sqrt(2)))
    expected = selected @ parameters["cls_mrc_out_w"] + parameters["cls_mrc_out_b"]
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_the_scores_of_an_input_do_not_depend_on_the_other_inputs_of_the_batch() -> None:
    kind = kind_of(TASKS["race"], KindSettings())
    examples = [
        MultipleChoiceExample(f"high{i}", "a b c d"[: 2 * i + 1], "e", ("f", "g h"), None, PLACE) for i in range(3)
    ]
    features = kind.encode(examples, tokenizer(), training=False)
    whole, _, _ = scores_and_rows(kind, features.batch(np.arange(3)), False)
    for sample in range(3):
        alone, _, _ = scores_and_rows(kind, features.batch(np.array([sample])), False)
        np.testing.assert_allclose(alone, whole[features.unit_rows(np.array([sample]))], atol=1e-5)


def test_output_weights_are_drawn_from_a_normal_that_is_not_truncated() -> None:
    import paddle

    from ernie_gram.model.config import ModelConfig
    from tasks.kinds.networks import output_layer

    with fresh_program() as (executor, _, startup):
        output_layer("out", 400, 100, ModelConfig(initializer_range=0.03))
        executor.run(startup)
        weights, bias = (np.array(paddle.static.global_scope().find_var(f"out_{part}").get_tensor()) for part in "wb")
    assert weights.shape == (400, 100)
    assert abs(weights.std() / 0.03 - 1) < 0.02
    assert not bias.any()
