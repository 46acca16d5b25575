"""The tables of results.jsonl."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.commands import ROOT
from tests.support.reports import report


def test_a_study_without_the_folders_of_its_runs_has_a_row_for_each_variant_and_task(tmp_path: Path) -> None:
    variants, tasks = ("contiguous", "explicit"), ("sst2", "stsb")
    names = [f"{variant}_1,{task},seed={seed}" for task in tasks for variant in variants for seed in (1, 2, 3)]
    lines = (ROOT / "docs" / "results" / "ladder.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    by_run = {json.loads(line)["run"]: line for line in lines}
    kept = [by_run[name] for name in ("corpus corpus", "counts corpus held_out 1", "contiguous_1", *names)]
    (tmp_path / "ladder").mkdir()
    (tmp_path / "ladder" / "results.jsonl").write_text("".join(kept), encoding="utf-8")
    page, _ = report(tmp_path, tmp_path / "ladder")
    assert len(page.tables) == 2
    models = page.table_with("variant", "ngram perplexity")
    assert [row[:2] for row in models.rows[1:]] == [["contiguous", "1"]]
    scores = page.table_with("task", "variant", "score")
    assert [row[:3] for row in scores.rows[1:]] == [[task, variant, "3"] for task in tasks for variant in variants]
    assert scores.titles[1][3] == "mean of 73.62385321100918, 72.70642201834863, 72.70642201834863"
    assert scores.titles[4][3].startswith("mean of 21.93085966903994, ")
