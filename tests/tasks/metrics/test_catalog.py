"""Properties that every metric has: order does not matter, right predictions are best, empty ones are worst."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tasks.kinds.catalog import KINDS
from tasks.metrics.catalog import METRICS
from tasks.metrics.metric import Metric

TEXTS = [
    "北京大学",
    "《红楼梦》，曹雪芹",
    "ＡＢＣ１２３",
    "iPhone 6s的屏幕",
    "the Eiffel Tower",
    "3.5%",
    "“引号”（括号）",
    "…—",
    "𠮷野家",
]
ANSWERS = {f"question {i}": [text, f"{text}，第二"] for i, text in enumerate(TEXTS)}
PARTLY = {f"question {i}": text[:3] for i, text in enumerate(TEXTS)}
RIGHT = {key: texts[0] for key, texts in ANSWERS.items()}
TAGS = [["B-PER", "I-PER", "O"], ["B-LOC"], ["O", "I-ORG"], ["B-机构", "I-机构"]]
SPANS: list[dict[str, dict[str, list[list[int]]]]] = [
    {"name": {"李明": [[0, 1]]}},
    {"address": {"北京": [[3, 4], [8, 9]]}},
    {},
]
LETTERS = {"high/1-0": "A", "high/1-1": "B", "middle/1-0": "C"}
WRONG_LETTERS = {**LETTERS, "high/1-1": "D"}

# Name -> gold, right predictions, partly wrong predictions, empty predictions (None: there are none), and the main
# score of the right and of the empty predictions.
CASES: dict[str, tuple[Any, Any, Any, Any, float, float | None]] = {
    "accuracy": (["a", "b", "c"], ["a", "b", "c"], ["a", "b", "b"], None, 1, None),
    "accuracy_f1": ([*"101"], [*"101"], [*"110"], None, 1, None),
    "macro_f1": (["a", "b", "c"], ["a", "b", "c"], ["a", "b", "b"], None, 1, None),
    "matthews": ([*"1010"], [*"1010"], [*"1011"], None, 1, None),
    "correlation": ([1.5, 0.0, 5.0, 5.0], [1.5, 0.0, 5.0, 5.0], [1.0, 2.0, 3.0, 3.5], None, 1, None),
    "mean_squared_error": ([1.5, 0.0, 5.0], [1.5, 0.0, 5.0], [1.0, 2.0, 3.0], None, 0, None),
    "accuracy_by_id": (LETTERS, LETTERS, WRONG_LETTERS, {}, 1, 0),
    "race": (LETTERS, LETTERS, WRONG_LETTERS, {}, 1, 0),
    # No script removes the dash and the ellipsis: a text of ignored characters alone would have F1 0.
    "squad_v1": (ANSWERS, RIGHT, PARTLY, {}, 100, 0),
    "squad_v2": (
        ANSWERS | {"none": []},
        RIGHT | {"none": ""},
        PARTLY | {"none": "x"},
        dict.fromkeys(ANSWERS, ""),
        100,
        0,
    ),
    "cmrc2018": (ANSWERS, RIGHT, PARTLY, {}, 100, 0),
    "dureader_robust": (ANSWERS, RIGHT, PARTLY, {}, 100, 0),
    "conlleval": (TAGS, TAGS, [["B-PER", "O", "O"], ["B-LOC"], ["O", "O"], ["B-机构", "I-机构"]], None, 100, None),
    "cluener": (SPANS, SPANS, [{"name": {"李": [[0, 0]]}}, SPANS[1], {}], None, 1, None),
}
EACH_METRIC = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS.keys())


def shuffled(values: Any, seed: int) -> Any:
    """Return rows, or the items of a dict, in another order; rows with the same seed stay side by side."""
    rows = list(values.items()) if isinstance(values, dict) else list(values)
    random.Random(seed).shuffle(rows)
    return dict(rows) if isinstance(values, dict) else rows


def test_every_metric_has_a_case_and_its_own_name() -> None:
    assert set(CASES) == set(METRICS)
    assert all(metric.name == name for name, metric in METRICS.items())
    assert {name for kind in KINDS.values() for name in kind.metrics} == set(METRICS)


@EACH_METRIC
def test_figures_do_not_depend_on_the_order(metric: Metric) -> None:
    gold, _, partly, *_ = CASES[metric.name]
    for seed in range(5):
        assert metric(shuffled(gold, seed), shuffled(partly, seed)) == pytest.approx(metric(gold, partly))


@EACH_METRIC
def test_right_predictions_have_the_best_main_score(metric: Metric) -> None:
    gold, right, partly, _, best, _ = CASES[metric.name]
    scores, others = metric(gold, right), metric(gold, partly)
    assert scores[metric.main] == pytest.approx(best)
    gain = scores[metric.main] - others[metric.main]
    assert gain > 0 if metric.direction == "max" else gain < 0


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case[3] is not None and name != "squad_v2"])
def test_empty_predictions_have_the_worst_scores(name: str) -> None:
    gold, _, _, empty, _, worst = CASES[name]
    scores = METRICS[name](gold, empty)
    assert scores[METRICS[name].main] == worst
    assert scores["skipped"] == scores["total"] == len(gold)


def test_empty_texts_are_right_for_unanswerable_questions_only() -> None:
    scores = METRICS["squad_v2"]({"a": ["red"], "b": ["blue"], "c": []}, {"a": "", "b": "", "c": ""})
    assert (scores["HasAns_f1"], scores["NoAns_f1"], scores["f1"]) == (0, 100, pytest.approx(100 / 3))


def test_no_predicted_entities_have_the_worst_scores() -> None:
    assert METRICS["conlleval"](TAGS, [["O"] * len(tags) for tags in TAGS])["f1"] == 0
    assert METRICS["cluener"](SPANS, [{}, {}, {}])["f1"] == 0
