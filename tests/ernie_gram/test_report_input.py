"""The page on runs loads nothing, is light, cannot be misled by text of files, and says what it left out."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

from ernie_gram.report import main
from ernie_gram.run.run_log import METERS
from tests.support.commands import assert_one_line_error, call
from tests.support.reports import assert_self_contained, curves, made_run, perplexities, report

HOSTILE = "</script><script>alert(1)</script>\"'&<img src=https://example.org/x>"


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
    page, _ = report(tmp_path, first, other, tuned, tmp_path / "experiment")
    assert_self_contained(page)
    assert page.text.count("<script>alert(1)") >= 8
    assert {name for name, _ in page.elements} <= {
        *("html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "h4", "nav", "a", "section", "p", "div"),
        *("details", "summary", "table", "caption", "thead", "tbody", "tr", "th", "td", "small", "label", "input", "i"),
        *("figure", "figcaption", "svg", "g", "path", "text", "rect", "circle", "span", "wbr", "script"),
    }


def test_the_page_of_seven_long_runs_is_small(tmp_path: Path) -> None:
    folders = []
    for number in range(7):
        folder = made_run(tmp_path / f"run{number}", perplexities(50.0, 60.0), objective={"masking": f"m{number}"})
        names = ("loss", "coarse", "fine", "generator", "rtd", "learning_rate", "skipped", "sent_bytes", *METERS)
        values = dict.fromkeys(names, 1.23456789)
        records = [{"kind": "train", "step": step, **values} for step in range(50, 100_000, 50)]
        records += [{"kind": "eval", "step": step, "perplexity": 9.87654321} for step in range(1000, 100_000, 1000)]
        (folder / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        folders.append(folder)
    page, _ = report(tmp_path, *folders)
    assert (tmp_path / "report.html").stat().st_size < 300_000
    points = curves(page)["Loss term rtd"]["run0"].split()
    assert (len(points), points[-1]) == (150, "99950:1.23457")
    terms = {title for title in curves(page) if title.startswith("Loss term")}
    assert terms == {f"Loss term {name}" for name in ("coarse", "fine", "generator", "rtd")}


def test_the_page_says_where_each_run_comes_from(tmp_path: Path) -> None:
    run, earlier = (made_run(tmp_path / name, perplexities(50.0, 60.0)) for name in ("run", "earlier"))
    starts = [{"step": step, "commit": f"abc{step}", "command": "pretrain <&>"} for step in (0, 10)]
    (run / "starts.jsonl").write_text("".join(json.dumps(start) + "\n" for start in starts))
    page, _ = report(tmp_path, run, earlier)
    rows = page.table_with("commit", "command").rows
    assert rows[1:] == [["run", str(step), f"abc{step}", "pretrain <&>"] for step in (0, 10)]
    page, _ = report(tmp_path, earlier)
    assert "Where the results come from" not in page.text


def test_what_is_left_out_is_a_note(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", perplexities(50.0, 60.0))
    with (run / "log.jsonl").open("a") as log:
        log.write('[]\n{"kind": "eval", "step": 20, "perpl')
    only_trained = made_run(tmp_path / "trained", {})
    (only_trained / "log.jsonl").write_text('{"kind": "train", "step": 1, "loss": 2.5}\n')
    begun = made_run(tmp_path / "begun", {})
    page, done = report(tmp_path, run, only_trained, begun)
    expected = [
        f"{run / 'log.jsonl'}: left out, because incomplete: line 5 and 1 more",
        f"{only_trained}: no evaluations in its log, so only its training is shown",
        f"{begun}: no records yet; left out",
    ]
    assert done.stderr.splitlines() == [f"note: {line}" for line in expected]
    assert all(line in page.text for line in expected)
    assert page.table_with("steps", "units, end").row("run")["units, end"] == "50"
    assert {*curves(page)["Training loss"]} == {"run", "trained"}


def test_evaluations_on_different_text_are_noted(tmp_path: Path) -> None:
    folders = [made_run(tmp_path / name, perplexities(50.0, 60.0), data={"x": name}) for name in "ab"]
    for number, folder in enumerate(folders):
        (folder / "held_out.json").write_text(json.dumps({"text": str(number), "lexicon": ""}))
    _, done = report(tmp_path, *folders)
    assert done.stderr == "note: different held-out texts, so perplexities of these sets do not compare: a; b\n"


def test_baselines_may_come_from_a_file(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", perplexities(50.0, 60.0))
    (tmp_path / "counts").write_text("left neighbour: perplexity 326, over n-grams 4951\n")
    page, _ = report(tmp_path, run, "--baselines", tmp_path / "counts")
    row = page.table_with("steps", "units, end").row("counts: left neighbour")
    assert (row["units, end"], row["n-grams, end"]) == ("326", "4,951")
    assert "left neighbour 4,951" in page.text


def test_baselines_are_those_of_one_of_the_runs(tmp_path: Path) -> None:
    first, other = (
        made_run(tmp_path / name, {20: {"perplexity": 500.0, "frequency_perplexity": value}})
        for name, value in (("first", 689.4051), ("other", 736.6329))
    )
    counts, target = tmp_path / "counts", tmp_path / "page.html"
    counts.write_text("unit frequencies: perplexity 689, over n-grams 2358\n")
    for runs in ([first], [other, first]):
        page, _ = report(tmp_path, *runs, "--baselines", counts)
        assert page.table_with("steps", "units, end").row("counts: unit frequencies")["units, end"] == "689"
    done = call(main, str(other), "--baselines", str(counts), "--output", str(target), "--examples", "0")
    assert_one_line_error(done, f"--baselines: {counts} is of another run: its unit frequencies have perplexity 689, ")
    assert f"those in the log of {other} 737; make it with `ernie-gram count-baselines {other}`" in done.stderr
    assert not target.exists()


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", perplexities(50.0, 60.0))
    other = made_run(tmp_path / "other", perplexities(50.0, 60.0))
    (other / "vocab.txt").write_text("a\nc\n")
    tuned = made_run(tmp_path / "tuned", {20: {"score": 0.5}}, task="cola")
    (tuned / "result.json").write_text("{")
    (tmp_path / "empty").mkdir()
    begun = made_run(tmp_path / "begun", {})
    target = ["--output", str(tmp_path / "page.html"), "--examples", "0"]
    for arguments, message in (
        (
            [tmp_path / "empty"],
            f"{tmp_path / 'empty'}: not the folder of a run (log.jsonl, config.yaml), nor one of an",
        ),
        ([tmp_path / "nowhere"], f"{tmp_path / 'nowhere'}: no such folder; give the folders of runs or experiments"),
        ([run, other], f"{run} and {other}: have different vocabularies, so their perplexities cannot be compared"),
        ([tuned], f"{tuned / 'result.json'}: line 1, column 2: "),
        ([begun], f"{begun}: no run has records yet"),
        ([run, "--baselines", other / "vocab.txt"], f"--baselines: {other / 'vocab.txt'} is not the output of"),
        ([run, "--baselines", tmp_path / "nowhere"], f"--baselines: {tmp_path / 'nowhere'}: No such file"),
        ([run, "--examples", "-1"], "--examples: must be at least 0"),
    ):
        assert_one_line_error(call(main, *target, *map(str, arguments)), message)
        assert not (tmp_path / "page.html").exists()
    own = ["--output", str(run / "config.yaml"), "--overwrite"]
    assert_one_line_error(call(main, str(run), *own), f"--output: {run / 'config.yaml'} belongs to the run in ")
    (tmp_path / "page.html").touch()
    assert_one_line_error(call(main, str(run), *target), f"{tmp_path / 'page.html'}: already exists; choose another")
