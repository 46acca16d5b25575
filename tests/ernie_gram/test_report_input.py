"""The page on runs loads nothing, is light, cannot be misled by text of files, and says what it left out."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

from ernie_gram.report import main
from ernie_gram.run.run_log import METERS
from tests.support.commands import assert_one_line_error, call
from tests.support.reports import assert_self_contained, made_run, perplexities, report

HOSTILE = "$\\bad$</script><script>alert(1)</script>\"'&<img src=https://example.org/x>"


def test_text_of_files_cannot_become_markup_of_the_page(finetuned: Path, tmp_path: Path) -> None:
    evaluations = {0: {"perplexity": 8.0, HOSTILE: 1.0}, 20: {"perplexity": math.nan, "ngram_perplexity": 10.0}}
    first = made_run(tmp_path / f"<b>{HOSTILE.replace('/', '_')}", evaluations, objective={HOSTILE: HOSTILE})
    other = made_run(tmp_path / "other", perplexities(7.0, 8.0))
    tuned = tmp_path / "tuned"
    tuned.mkdir()
    for name in ("config.yaml", "log.jsonl"):
        shutil.copy(finetuned / name, tuned / name)
    result = json.loads((finetuned / "result.json").read_text())
    result |= {"confusion": {HOSTILE: {HOSTILE: {HOSTILE: 3}}}}
    result["constant"]["answer"] = HOSTILE
    result["scores"]["dev"][HOSTILE] = 0.5
    (tuned / "result.json").write_text(json.dumps(result))
    with (other / "log.jsonl").open("a") as log:
        log.write(json.dumps({"kind": "train", "step": 30, "loss": HOSTILE, "coarse": 10**400, HOSTILE: 1.0}) + "\n")
    results = {"run": HOSTILE, "varied": {HOSTILE: HOSTILE}, "seed": 1, "result": {HOSTILE: 1.0}}
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "results.jsonl").write_text(json.dumps(results))
    page, _, _ = report(tmp_path, first, other, tuned, tmp_path / "experiment")
    assert_self_contained(page)
    assert page.text.count("<script>alert(1)") >= 8


def test_the_page_of_long_runs_is_small(tmp_path: Path) -> None:
    folders = []
    for number in range(3):
        folder = made_run(tmp_path / f"run{number}", perplexities(50.0, 60.0), objective={"masking": f"m{number}"})
        names = ("loss", "coarse", "fine", "generator", "rtd", "learning_rate", "skipped", "sent_bytes", *METERS)
        values = dict.fromkeys(names, 1.23456789)
        records = [{"kind": "train", "step": step, **values} for step in range(200, 100_000, 200)]
        records += [{"kind": "eval", "step": step, "perplexity": 9.87654321} for step in range(1000, 100_000, 1000)]
        (folder / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        folders.append(folder)
    _, _, curves = report(tmp_path, *folders)
    assert (tmp_path / "report.html").stat().st_size < 400_000
    points = curves["Loss term rtd"]["run0"]
    assert (len(points), points[0], points[-1]) == (150, (200, 1.23456789), (99800, 1.23456789))
    terms = {title for title in curves if title.startswith("Loss term")}
    assert terms == {f"Loss term {name}" for name in ("coarse", "fine", "generator", "rtd")}


def test_what_is_left_out_is_a_note(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", perplexities(50.0, 60.0))
    with (run / "log.jsonl").open("a") as log:
        log.write('[]\n{"kind": "eval", "step": 20, "perpl')
    only_trained = made_run(tmp_path / "trained", {})
    (only_trained / "log.jsonl").write_text('{"kind": "train", "step": 1, "loss": 2.5}\n')
    begun = made_run(tmp_path / "begun", {})
    page, done, curves = report(tmp_path, run, only_trained, begun)
    expected = [
        f"{run / 'log.jsonl'}: left out, because incomplete: line 5, 6",
        f"{only_trained}: no evaluations in its log",
        f"{begun}: no records yet; left out",
    ]
    assert done.stderr.splitlines()[:3] == [f"note: {line}" for line in expected]
    assert all(line in page.text for line in expected)
    assert page.table_with("steps", "units, end").row("run")["units, end"] == "50"
    assert {*curves["Training loss"]} == {"run", "trained"}


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", perplexities(50.0, 60.0))
    other = made_run(tmp_path / "other", perplexities(50.0, 60.0))
    (other / "vocab.txt").write_text("a\nc\n")
    tuned = made_run(tmp_path / "tuned", {20: {"score": 0.5}}, task="cola")
    (tuned / "result.json").write_text("{")
    begun = made_run(tmp_path / "begun", {})
    (tmp_path / "empty").mkdir()
    target = ["--output", str(tmp_path / "page.html"), "--examples", "0"]
    for arguments, key in (
        ([tmp_path / "empty"], tmp_path / "empty"),
        ([tmp_path / "nowhere"], tmp_path / "nowhere"),
        ([run, other], "run, other"),
        ([tuned], tuned / "result.json"),
        ([begun], begun),
        ([run, "--examples", "-1"], "--examples"),
    ):
        assert_one_line_error(call(main, *target, *map(str, arguments)), f"{key}: ")
        assert not (tmp_path / "page.html").exists()
    own = ["--output", str(run / "config.yaml"), "--overwrite"]
    assert_one_line_error(call(main, str(run), *own), f"--output: {run / 'config.yaml'} ")
    (tmp_path / "page.html").touch()
    assert_one_line_error(call(main, str(run), *target), f"{tmp_path / 'page.html'}: ")
