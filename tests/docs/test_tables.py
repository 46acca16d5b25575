"""docs/studies/tables.py: from made-up results, and the numbers of the published tables again."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.docs.test_scripts import study
from tests.support.commands import ROOT

tables = study("tables")
TREE: dict[str, Any] = {
    "title": "Made up",
    "seeds": [1, 2],
    "reference": "a",
    "corpora": {"corpus": {}},
    "variants": {"a": {"config": "x", "what": "masking"}, "b": {"config": "x", "what": "more"}, "given": {"what": ""}},
    "finetuning": {"seeds": [1, 2], "tasks": {"sst2": {}, "mrpc": {}}},
}


def model(variant: str, seed: int, ngrams: float, cpu: float) -> dict[str, Any]:
    values = ((0, 900.0), (10, ngrams))
    curve = [{"step": step, "ngram_perplexity": value, "perplexity": 50.0} for step, value in values]
    numbers = {"ngram_perplexity": ngrams, "perplexity": 50.0, "accuracy": 0.25, "steps": 10}
    of = {"kind": "pre-training", "variant": variant, "seed": seed}
    return {**of, "result": {**numbers, "cpu_seconds_per_step": cpu}, "curve": curve}


def scores(variant: str, seed: int, *values: tuple[float, float]) -> list[dict[str, Any]]:
    """Return the fine-tunings of a model: for each seed, the scores of both tasks."""
    of = {"kind": "fine-tuning", "variant": variant, "seed": seed}
    return [
        {**of, "task": task, "finetuning_seed": number, "result": {"score": value}}
        for number, pair in enumerate(values, 1)
        for task, value in zip(("sst2", "mrpc"), pair, strict=True)
    ]


def test_the_tables_show_means_ranges_and_paired_differences() -> None:
    counts = {f"{name}, {what}": 7.0 for name in tables.COUNTERS for what in tables.WHAT}
    made = [model("a", 1, 100.0, 1.0), model("a", 2, 300.0, 1.0), model("b", 1, 100.0, 2.0), model("b", 2, 270.0, 2.0)]
    made += [*scores("a", 1, (60, 50), (62, 54)), *scores("a", 2, (70, 50), (72, 52))]
    made += [
        *scores("b", 1, (61, 60), (64, 60)),
        *scores("b", 2, (70, 60), (68, 60)),
        *scores("given", 1, (66, 1), (66, 1)),
    ]
    made.append({"kind": "counts", "corpus": "corpus", "held_out": "held_out", "seed": 1, "result": counts})
    # Of other studies, in the same file.
    made += [model("a", 3, 1.0, 1.0), *scores("a", 3, (1, 1)), {**made[-1], "seed": 3}, {**made[-1], "corpus": "other"}]
    made += [{**scores("a", 1, (1, 1))[0], "finetuning_seed": 3}]
    text = tables.report(tables.Study(TREE, made))
    assert "Equal CPU time is 10 s." in text
    units = "50 (50 - 50) | - | 25.0% (25.0% - 25.0%)"
    # Half the steps of b are the geometric means of 900 and the end.
    for row in (
        f"| a | masking | 900 | 200 (100 - 300) | 50 | {units} | 1.000 | 200 (100 - 300) |",
        f"| b | more | 900 | 185 (100 - 270) | 50 | {units} | 2.000 | 396 (300 - 493) |",
        "| b | -5.0 % (-10.0 to +0.0) | +0.0 % (+0.0 to +0.0) |",
        "| given | - | - |",
        "| corpus | held_out | left neighbour | 7 | 7 |",
        "| a | 66.0 ± 5.9 | 51.5 ± 1.9 | 58.75 (56.50 - 61.00) |",
        "| given | 66.0 ± 0.0 | 1.0 ± 0.0 | 33.50 |",
        # Seed 1: 61 - 60 and 64 - 62; seed 2: 70 - 70 and 68 - 72.
        "| b | -0.2 (-2.0 to +1.5) | +8.5 (+8.0 to +9.0) | +4.12 (+3.50 to +4.75) |",
        # The given model is paired with every seed.
        "| given | +0.0 (-5.0 to +5.0) | -50.5 (-51.0 to -50.0) | -25.25 (-27.50 to -23.00) |",
    ):
        assert f"{row}\n" in text, row


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
    with patch.object(sys, "argv", ["tables.py", "precision", "--output", str(tmp_path)]):
        tables.main()
    names = ["precision.md", "precision_perplexities.png", "precision_scores.png"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert (tmp_path / names[1]).read_bytes().startswith(b"\x89PNG")
    assert "| explicit | float32 |" in (tmp_path / names[0]).read_text("utf-8")
