"""docs/studies/tables.py: from made-up results, and the numbers of the published tables again."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.support.commands import ROOT
from tests.support.studies import study

tables = study("tables")
TREE: dict[str, Any] = {
    "title": "Made up",
    "seeds": [1, 2, 3],
    "reference": "a",
    "corpora": {"corpus": {}, "held_out": {"text": "held_out"}},
    "variants": {name: {"config": "x.yaml", "what": f"masking {name}"} for name in "abc"},
    "finetuning": {"seeds": [1, 2], "tasks": {"sst2": {}, "mrpc": {}}},
}


def model(variant: str, seed: int, ngrams: float, cpu: float) -> dict[str, Any]:
    values = ((0, 900.0), (10, ngrams))
    curve = [{"step": step, "ngram_perplexity": value, "perplexity": 50.0} for step, value in values]
    numbers = {"ngram_perplexity": ngrams, "perplexity": 50.0, "accuracy": 0.25, "steps": 10}
    of = {"kind": "pre-training", "variant": variant, "seed": seed}
    return {**of, "result": {**numbers, "cpu_seconds_per_step": cpu}, "curve": curve}


def score(variant: str, seed: int, task: str, number: int, value: float) -> dict[str, Any]:
    of = {"kind": "fine-tuning", "variant": variant, "seed": seed}
    return {**of, "task": task, "finetuning_seed": number, "result": {"score": value}}


def records() -> list[dict[str, Any]]:
    counts = {f"{name}, {what}": 7.0 for name in tables.COUNTERS for what in tables.WHAT}
    made = [model("a", 1, 100.0, 1.0), model("a", 2, 300.0, 1.0), model("a", 3, 200.0, 1.0), model("b", 1, 100.0, 2.0)]
    for seed in (1, 2, 3):
        for number in (1, 2):
            made += [score("a", seed, task, number, 60.0 + seed + number) for task in ("sst2", "mrpc")]
    made += [score("b", 1, "sst2", 1, 64.0), score("b", 1, "sst2", 2, 66.0), score("b", 2, "sst2", 1, 60.0)]
    return [*made, {"kind": "counts", "corpus": "corpus", "held_out": "held_out", "seed": 1, "result": counts}]


def report(found: list[dict[str, Any]], **changes: Any) -> str:
    return str(tables.report(tables.Study({**TREE, **changes}, found)))


def test_the_tables_show_means_ranges_and_paired_differences() -> None:
    text = report(records())
    assert "Equal CPU time is 10 s." in text
    lines = text.splitlines()
    [a] = [line for line in lines if line.startswith("| a | masking a |")]
    assert "| 900 | 200 (100 - 300) | 50 | 50 (50 - 50) | - | 25.0% (25.0% - 25.0%) | 1.000 | 200 (100 - 300) |" in a
    # Half the steps of b: the geometric mean of 900 and 100.
    [b] = [line for line in lines if line.startswith("| b | masking b |")]
    assert "| 900 | 100 [1 of 3] | 50 | 50 [1 of 3] | - | 25.0% [1 of 3] | 2.000 | 300 [1 of 3] |" in b
    assert "Without results yet: c." in text
    # The perplexities of b and a with seed 1 are 100 and 100.
    assert "| b | +0.0 % [1 of 3] | +0.0 % [1 of 3] |" in text
    assert "| corpus | held_out | left neighbour | 7 [1 of 3] | 7 [1 of 3] |" in text
    assert "| a | 63.5 ± 1.0 | 63.5 ± 1.0 | 63.50 (62.50 - 64.50) |" in text
    assert "| b | 63.3 ± 3.1 [3 of 6] | - [0 of 6] | - [0 of 3] |" in text
    # Seed 1: 64 - 62 and 66 - 63; seed 2: 60 - 63.
    assert "| b | -0.2 (-3.0 to +2.5) [2 of 3] | - | - |" in text


def test_seeds_of_other_studies_in_the_same_results_are_left_out() -> None:
    finetuning = {**TREE["finetuning"], "seeds": [2]}
    text = report([*records(), {**records()[-1], "seed": 2}], seeds=[2], finetuning=finetuning)
    assert "| 900 | 300 | 50 | 50 | - | 25.0% |" in text
    assert "| a | 64.0 | 64.0 | 64.00 |" in text
    assert "| corpus | held_out | left neighbour | 7 | 7 |" in text


@pytest.mark.parametrize(("reference", "other", "sign"), [("a", "given", 10.0), ("given", "a", -10.0)])
def test_a_given_model_is_paired_with_every_seed_of_the_reference(reference: str, other: str, sign: float) -> None:
    """Also in the mean over the tasks; and if it is the reference itself."""
    values = {"a": {1: 50.0, 2: 60.0, 3: 70.0}, "given": {1: 60.0}}
    made = [
        score(name, seed, task, number, value)
        for name, of_seeds in values.items()
        for seed, value in of_seeds.items()
        for task in ("sst2", "mrpc")
        for number in (1, 2)
    ]
    variants = {"a": {"config": "x.yaml", "what": "trained"}, "given": {"start": True, "what": "as it is"}}
    found = tables.Study({**TREE, "variants": variants, "reference": reference}, made)
    assert found.differences(other, "sst2") == found.mean_differences(other) == [sign, 0.0, -sign]


# A mean with its deviation, or with its range.
CELL = re.compile(r"\d+\.\d ± \d+\.\d|\d[\d,.]* \(\d[\d,.]* - \d[\d,.]*\)")


def test_the_published_tables_are_made_again() -> None:
    """Every mean with its deviation or range in the tables of the page of results is in the tables that are made.

    Left out are the ratios to counts, which the page has in addition.
    """
    made = "\n".join(tables.report(tables.read_study(path.stem)) for path in tables.HERE.glob("*.yaml"))
    # The page has one digit of the mean over the tasks.
    found = {re.sub(r"\d+\.\d\d", lambda number: f"{float(number[0]):.1f}", cell) for cell in CELL.findall(made)}
    page = (ROOT / "docs" / "results.md").read_text("utf-8").replace("*", "")
    cells = [cell for line in page.splitlines() if line.startswith("| ") for cell in CELL.findall(line)]
    published = {cell for cell in cells if not re.match(r"\d\.\d\d", cell)}
    assert len(published) > 100
    assert published - found == set()


def test_the_script_writes_tables_and_figures(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    lines = (ROOT / "docs" / "results" / "ladder.jsonl").read_text("utf-8").splitlines(keepends=True)
    results.write_text("".join(line for line in lines if json.loads(line).get("seed", 1) == 1))
    command = ["tables.py", "precision", "--results", str(results), "--output", str(tmp_path / "out")]
    with patch.object(sys, "argv", command):
        tables.main()
    names = ["precision.md", "precision_perplexities.png", "precision_scores.png"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    assert (tmp_path / "out" / names[1]).read_bytes().startswith(b"\x89PNG")
    assert "| explicit | float32 |" in (tmp_path / "out" / names[0]).read_text("utf-8")
