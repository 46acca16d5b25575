"""Entity scores are those computed by hand."""

from __future__ import annotations

import pytest

from tasks.metrics.entities import cluener, conlleval

GOLD = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG"], ["B-LOC", "I-LOC", "O"]]
PREDICTIONS = [["B-PER", "I-PER", "O", "I-LOC"], ["B-ORG", "I-ORG"], ["B-LOC", "O", "B-LOC"]]


def test_conlleval_counts_entities_with_the_right_type_and_ends() -> None:
    scores = conlleval(GOLD, PREDICTIONS)
    expected = {"precision": 100 * 2 / 5, "recall": 100 * 2 / 4, "f1": 100 * 2 * 2 / 9}
    expected |= {"token_accuracy": 100 * 4 / 9, "non_o_accuracy": 100 * 3 / 6, "tokens": 9}
    expected |= {"gold_entities": 4, "predicted_entities": 5, "correct_entities": 2}
    expected |= {"LOC_precision": 100 / 3, "LOC_recall": 50, "LOC_f1": 40, "LOC_found": 3}
    expected |= {"ORG_precision": 0, "ORG_recall": 0, "ORG_f1": 0, "ORG_found": 1}
    expected |= {"PER_precision": 100, "PER_recall": 100, "PER_f1": 100, "PER_found": 1}
    assert scores == pytest.approx(expected)


@pytest.mark.parametrize(
    ("gold", "predicted", "accuracy"),
    [
        ("B-A I-A O", "I-A I-A O", 100),
        ("B-A I-A O B-A", "I-A I-A O B-A", 75),
        ("I-A O B-A", "B-A O B-A", 100),
        ("O I-A B-A", "O B-A I-A", 200 / 3),
        ("I-A I-A O", "O I-A O", 200 / 3),
        ("B-A I-A E-A", "O B-A E-A", 100 / 3),
        ("B-A I-A E-A S-A", "B-A I-A O S-A", 75),
        ("B-A I-A E-A S-A", "B-A I-A I-A B-A", 100),
    ],
)
def test_tags_of_one_scheme_are_compared_as_they_are(gold: str, predicted: str, accuracy: float) -> None:
    """As conlleval does, also those that break the scheme; others are compared in IOB2."""
    assert conlleval([gold.split()], [predicted.split()])["token_accuracy"] == pytest.approx(accuracy)


def test_an_entity_does_not_cross_the_end_of_a_sentence() -> None:
    assert conlleval([["B-PER"], ["I-PER"]], [["B-PER"], ["I-PER"]])["gold_entities"] == 2


def test_conlleval_without_entities_gives_0() -> None:
    scores = conlleval([["O", "O"]], [["O", "O"]])
    assert (scores["precision"], scores["recall"], scores["f1"], scores["token_accuracy"]) == (0, 0, 0, 100)
    assert conlleval([[]], [[]])["token_accuracy"] == 0


def test_cluener_averages_the_types_by_surface_and_also_counts_spans() -> None:
    gold = [
        {"name": {"李明": [[0, 1], [5, 6]]}, "address": {"北京": [[3, 4]]}},
        {"name": {"李明": [[0, 1]]}},
    ]
    predictions = [
        {"name": {"李明": [[0, 1]], "明": [[6, 6]]}, "address": {}},
        {"name": {"李明": [[7, 8]]}, "game": {"围棋": [[0, 1]]}},
    ]
    scores = cluener(gold, predictions)
    # Surfaces of names: 2 right of 3 predicted and 2 gold. Spans of all types: 1 right of 4 predicted and 4 gold.
    expected = {"f1": (4 / 5 + 0 + 0) / 3, "span_precision": 1 / 4, "span_recall": 1 / 4, "span_f1": 1 / 4}
    expected |= {"name_f1": 4 / 5, "address_f1": 0, "game_f1": 0}
    assert scores == pytest.approx(expected)
    assert cluener([{}], [{}])["f1"] == cluener(gold, [{}, {}])["f1"] == 0


def test_a_type_called_span_does_not_replace_the_score_of_all_spans() -> None:
    scores = cluener([{"span": {"a": [[0, 0]]}, "name": {"b": [[2, 2]]}}], [{"span": {"a": [[0, 0]]}}])
    assert (scores["f1"], scores["span_f1"]) == (1 / 2, pytest.approx(2 / 3))
