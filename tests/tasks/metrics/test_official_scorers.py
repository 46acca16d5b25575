"""Acceptance: the scores of fixed predictions are those that the official scorers printed, to every printed digit.

The cases are in the folder `scorer_cases` of the folder that the environment variable TASK_DATA names.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasks.files.official import load_split, with_labels
from tasks.files.submissions import read_predictions
from tasks.kinds.catalog import kind_of
from tasks.kinds.settings import KindSettings
from tasks.kinds.task import Source, Split
from tasks.layouts.tables import Conll
from tasks.metrics.catalog import METRICS
from tasks.registry import TASKS
from tests.support.task_files import read

DATA = Path(os.environ.get("TASK_DATA", ""))
CASES = DATA / "scorer_cases"
pytestmark = pytest.mark.needs("TASK_DATA")


def expected_of(case: str) -> dict[str, Any]:
    content = json.loads((CASES / case / "expected.json").read_text(encoding="utf-8"))
    return {**content["expected"], "other_scorers": content.get("other_scorers")}


def check(case: str, ours: dict[str, float], expected: dict[str, Any]) -> None:
    """Print our scores beside the expected ones; fail unless all are equal in their printed form.

    An expected score is a text with a number of decimals, a float, of which every digit counts, or a count.
    """
    wrong = []
    for name, value in expected.items():
        decimals = len(value.partition(".")[2]) if isinstance(value, str) else None
        printed = repr(ours[name]) if decimals is None else f"{ours[name]:.{decimals}f}"
        print(f"{case:26} {name:16} expected {value!s:22} ours {printed}")
        wrong += [name] if printed != str(value) and float(printed) != value else []
    assert not wrong


def gold_and_predictions(name: str, gold: str, predictions: str) -> tuple[Any, Any]:
    """Return what the metric of a task takes, of a file with gold values and of a submission."""
    dev = Split((Source((gold,)),))
    task = replace(TASKS[name], splits={**TASKS[name].splits, "dev": dev})
    kind, examples = kind_of(task, KindSettings()), load_split(task, DATA, "dev").examples
    return kind.gold(examples), read_predictions(CASES / predictions, kind, examples, omitted=0).for_metric


def test_squad_v2() -> None:
    case = "squad_v2.0"
    values = gold_and_predictions("squad2", f"scorer_cases/{case}/gold.json", f"{case}/predictions.json")
    na_prob = json.loads((CASES / case / "na_prob.json").read_text(encoding="utf-8"))
    expected = expected_of(case)
    options: dict[str, dict[str, Any]] = {
        "predictions.json": {},
        "with --na-prob-file na_prob.json (threshold 1.0)": {"na_prob": na_prob},
        "with --na-prob-file na_prob.json --na-prob-thresh 0.5": {"na_prob": na_prob, "threshold": 0.5},
    }
    assert {*options, "other_scorers"} == set(expected)
    for name, chosen in options.items():
        ours = METRICS["squad_v2"].function(*values, **chosen)
        assert set(ours) == set(expected[name])
        check(f"SQuAD 2.0 {len(chosen)} options", ours, expected[name])


@pytest.mark.parametrize("task", ["squad1", "cmrc2018", "drcd", "dureader_robust"])
def test_answers(task: str) -> None:
    case = "squad_v1.1" if task == "squad1" else task
    values = gold_and_predictions(task, f"scorer_cases/{case}/gold.json", f"{case}/predictions.json")
    ours, expected = METRICS[TASKS[task].metric].function(*values), expected_of(case)
    names = {"average": "AVERAGE", "f1": "F1", "em": "EM", "total": "TOTAL", "skipped": "SKIP"}
    if task == "squad1":
        names = {name: name for name in expected if name != "other_scorers"}
    check(case, ours, {name: expected[official] for name, official in names.items() if official in expected})


def write_gold(path: Path, scored: Path) -> None:
    """Write a file for conlleval without its last column, the predictions."""
    path.write_text(re.sub(r"[ \t]\S+$", "", scored.read_text(encoding="utf-8"), flags=re.MULTILINE), encoding="utf-8")


@pytest.mark.parametrize("case", ["conll2003", "msra_ner"])
def test_scored_files_have_conllevals_accuracies(tmp_path: Path, case: str) -> None:
    """The predictions break IOB2 in places, which conlleval counts as wrong tokens."""
    path = CASES / case / "gold_and_predictions.txt"
    write_gold(tmp_path / "t", path)
    task = replace(TASKS["conll2003"], labels=None)
    task = replace(task, splits={"train": Split((Source(("t",)),)), "dev": Split((Source(("t",)),))})
    kind = kind_of(with_labels(task, tmp_path), KindSettings())
    scores = kind.evaluate(read_predictions(path, kind, load_split(kind.task, tmp_path, "dev").examples, 0))
    printed = json.loads((CASES / case / "expected.json").read_text(encoding="utf-8"))["printed"]
    assert f"accuracy: {scores['non_o_accuracy']:6.2f}%; (non-O)" in printed


def test_official_tags_in_iob1_are_all_right() -> None:
    kind = kind_of(TASKS["conll2003"], KindSettings())
    examples = load_split(kind.task, DATA, "dev").examples
    predictions = read_predictions(DATA / "conll2003" / "eng.testa", kind, examples, omitted=0)
    scores = kind.evaluate(predictions)
    assert {scores[name] for name in ("f1", "token_accuracy", "non_o_accuracy")} == {100.0}


@pytest.mark.parametrize("case", ["conll2003", "msra_ner"])
def test_conlleval(tmp_path: Path, case: str) -> None:
    path = CASES / case / "gold_and_predictions.txt"
    write_gold(tmp_path / "t", path)
    gold, predictions = ([row.values["tags"] for row in read(Conll(), each)] for each in (tmp_path / "t", path))
    ours = METRICS["conlleval"].function(gold, predictions)
    # The case was made with a port of conlleval that counts the end of each sentence as a token with a right tag.
    words, ends = ours["tokens"], len(gold)
    ours["tokens"] = words + ends
    ours["token_accuracy"] = (ours["token_accuracy"] * words + 100 * ends) / (words + ends)
    expected = expected_of(case)
    other = expected.pop("other_scorers")
    for kind, scores in expected.pop("per_type").items():
        expected |= {f"{kind}_{name}": value for name, value in scores.items()}
    counts = {name: value for name, value in expected.items() if isinstance(value, int)}
    check(case, ours, {**{name: f"{value:.2f}" for name, value in expected.items()}, **counts})
    printed = json.loads((CASES / case / "expected.json").read_text(encoding="utf-8"))["printed"]
    assert f"accuracy: {ours['non_o_accuracy']:6.2f}%; (non-O)" in printed
    check(case, {"f1": ours["f1"]}, {"f1": f"{other['seqeval default f1']:.4f}"})


def test_cola() -> None:
    gold, predictions = gold_and_predictions("cola", "glue/CoLA/dev.tsv", "cola/predictions.tsv")
    matthews = METRICS["matthews"].function
    inverted = [{"0": "1", "1": "0"}[label] for label in predictions]
    ours = {
        "matthews_corrcoef": matthews(gold, predictions)["matthews"],
        "accuracy": matthews(gold, predictions)["accuracy"],
        "first_200_rows_matthews_corrcoef": matthews(gold[:200], predictions[:200])["matthews"],
        "all_predicted_1_matthews_corrcoef": matthews(gold, ["1"] * len(gold))["matthews"],
        "inverted_matthews_corrcoef": matthews(gold, inverted)["matthews"],
    }
    expected = expected_of("cola")
    del expected["other_scorers"]
    assert set(expected) == set(ours)
    check("CoLA", ours, expected)


def test_mrpc() -> None:
    gold, predictions = gold_and_predictions("mrpc", "glue/MRPC/dev.tsv", "mrpc/predictions.tsv")
    expected = expected_of("mrpc")
    ours = METRICS["accuracy_f1"].function(gold, predictions)
    names = {
        "accuracy": "accuracy",
        "f1": "f1_positive_class_1",
        "average": "average_of_both",
        "macro_f1": "macro_f1_for_contrast",
    }
    ours |= METRICS["macro_f1"].function(gold, predictions)
    check("MRPC", ours, {name: expected[official] for name, official in names.items()})
    for label in "01":
        constant = METRICS["accuracy_f1"].function(gold, [label] * len(gold))
        check(f"MRPC all {label}", constant, expected[f"all_predicted_{label}"])


def test_stsb() -> None:
    gold, predictions = gold_and_predictions("stsb", "glue/STS-B/dev.tsv", "stsb/predictions.tsv")
    expected = expected_of("stsb")
    names = {"pearson": "pearson", "spearman": "spearman", "average": "average_of_both"}
    clipped = [min(max(value, 0.0), 5.0) for value in predictions]
    correlation = METRICS["correlation"].function
    for case, values, scores in (
        ("STS-B", predictions, {name: expected[official] for name, official in names.items()}),
        ("STS-B clipped", clipped, expected["clipped_to_0_5"]),
        ("STS-B rounded", [round(value) for value in predictions], expected["rounded_to_integer"]),
    ):
        # The last two of the official 16 digits depend on the processor, with scipy as well.
        check(case, correlation(gold, values), {name: f"{score:.14f}" for name, score in scores.items()})
    # scipy's score is NaN.
    assert correlation(gold, [3.0] * len(gold))["pearson"] == 0
