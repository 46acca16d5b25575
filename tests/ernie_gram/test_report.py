"""The page on runs: what it shows is what the files have."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path

import pytest
import yaml

from ernie_gram import Model
from ernie_gram.pretraining import count_baselines
from ernie_gram.report import main
from ernie_gram.run.run_log import METERS, read_log
from tests.support.commands import ERNIE_GRAM, assert_one_line_error, call, python
from tests.support.reports import assert_self_contained, made_run, perplexities, report
from tests.support.tiny_task import DEV_ROWS


def test_a_pre_training_is_shown_with_its_numbers_beside_those_of_counts(finished: Path, tmp_path: Path) -> None:
    page, _, curves = report(tmp_path, finished)
    assert_self_contained(page)
    evaluations = [record for record in read_log(finished) if record["kind"] == "eval"]
    table = page.table_with("steps", "units, start")
    exact = table.exact("run")
    assert float(exact["units, start"]) == evaluations[0]["perplexity"]
    assert float(exact["units, end"]) == evaluations[-1]["perplexity"]
    assert float(exact["n-grams, end"]) == evaluations[-1]["ngram_perplexity"]
    assert float(exact["accuracy, end"]) == evaluations[-1]["accuracy"]
    assert table.row("run")["accuracy, end"] == f"{100 * evaluations[-1]['accuracy']:.2f} %"
    assert table.row("run")["steps"] == "24"
    for line in call(count_baselines.main, str(finished)).stdout.splitlines():
        name, units, ngrams = re.findall(r"(.+): perplexity (\d+), over n-grams (\d+)", line)[0]
        counts = table.exact(f"counts: {name}")
        assert (f"{float(counts['units, end']):.0f}", f"{float(counts['n-grams, end']):.0f}") == (units, ngrams)
    points = curves["Held-out perplexity, all masked units"]["run"]
    assert points == [(record["step"], record["perplexity"]) for record in evaluations]
    assert not [title for title in curves for meter in METERS if meter in title]
    steps = [record["step"] for record in read_log(finished) if record["kind"] == "train"]
    assert [step for step, _ in curves["Learning rate"]["run"]] == steps
    assert {"objective.masking", "objective.mask_fraction"} <= {
        row[0] for row in page.table_with("setting", "run").rows
    }
    rows = [line.split("\t") for line in (finished / "lexicon.tsv").read_text().splitlines()[1:]]
    counts = sorted(int(count) for ngram, count, _ in rows if ngram.count(" ") == 1)
    row = page.table_with("length", "occurrences").row("2 words")
    expected = [f"{number:,}" for number in (len(counts), sum(counts), counts[0])]
    assert [row[key] for key in ("n-grams", "occurrences", "least")] == expected
    held_out = json.loads((finished / "held_out.json").read_text())
    share = 1 - (held_out["units"] - held_out["ngram_units"]) / held_out["tokens"]
    assert f"{share:.1%} of the held-out tokens" in page.text


def test_corpora_that_are_not_those_of_the_run_are_not_used(finished: Path, tmp_path: Path) -> None:
    settings = yaml.safe_load((finished / "config.yaml").read_text())
    other = shutil.copytree(finished, tmp_path / "other")
    settings["paths"] |= {"held_out": settings["paths"]["corpus"], "corpus": str(tmp_path / "moved")}
    (other / "config.yaml").write_text(yaml.safe_dump(settings))
    page, done, _ = report(tmp_path, other, examples=1)
    assert all(f"{settings['paths'][name]}" in done.stderr for name in ("held_out", "corpus"))
    assert all(line.removeprefix("note: ") in page.text for line in done.stderr.splitlines())


def test_a_fine_tuning_is_shown_beside_the_most_frequent_label(
    tiny_task: Path, finetuned: Path, tmp_path: Path
) -> None:
    page, done, curves = report(tmp_path, finetuned)
    assert_self_contained(page)
    assert done.stderr == ""
    result = json.loads((finetuned / "result.json").read_text())
    labels = [line.split("\t")[1] for line in (tiny_task / "data" / "dev.tsv").read_text().splitlines()[1:]]
    scores = page.table_with("score", "run", "always 0").exact("dev: accuracy")
    assert float(scores["run"]) == result["scores"]["dev"]["accuracy"] == result["score"]
    assert float(scores["always 0"]) == pytest.approx(labels.count("0") / DEV_ROWS)
    evaluations = [record for record in read_log(finetuned) if record["kind"] == "eval"]
    lines = curves["dev: accuracy %"]
    assert lines["run"] == [(record["step"], 100 * record["score"]) for record in evaluations]
    chosen = result["steps"]["chosen"]
    assert [step for step, _ in lines["chosen"]] == [chosen]
    every = page.table_with("step", "dev: accuracy")
    assert [row[0] for row in every.rows[1:] if "(chosen)" in row[0]] == [f"{chosen} (chosen)"]
    assert [float(title[1]) for title in every.titles[1:]] == [record["score"] for record in evaluations]


def test_the_folder_of_a_sweep_stands_for_its_runs(tmp_path: Path) -> None:
    for seed in (1, 2):
        made_run(tmp_path / "sweep" / f"token_{seed}", perplexities(50.0, 60.0), seed=seed)
    page, done, _ = report(tmp_path, tmp_path / "sweep")
    assert_self_contained(page)
    assert [row[0] for row in page.table_with("starts from").rows[1:]] == ["token_1", "token_2"]
    assert done.stderr.count("note") == 1  # on corpora


def test_masks_of_held_out_texts_are_filled_by_the_last_checkpoint(finished: Path, tmp_path: Path) -> None:
    page, done, _ = report(tmp_path, finished, examples=2)
    assert_self_contained(page)
    assert done.stderr == ""
    tables = [table for table in page.tables if [row[0] for row in table.rows[1:6]] == list("12345")]
    assert len(tables) == 4
    first, second = (table.rows[-1][0] for table in tables[:2])
    assert " " in first or " " in second
    # After the explanation is the text, up to the head of its first table.
    text = " ".join(page.text.split()).partition("unit and its probability.")[2].partition(f"{first}run")[0]
    found = re.fullmatch(f" (.*) {re.escape(first)} (.*) {re.escape(second)} (.*) ", text)
    assert found is not None, text
    model = Model.load(finished)
    guesses = model.fill_mask(f"{found[1]} [MASK] {found[2]} [MASK] {found[3]}", top=10_000)
    for table, each in zip(tables[:2], guesses, strict=True):
        assert [row[1] for row in table.rows[1:6]] == [f"{guess.unit} {guess.probability:.1%}" for guess in each[:5]]
        probability = next(guess.probability for guess in each if guess.unit == table.rows[-1][0])
        assert float(table.titles[-1][1]) == pytest.approx(probability, rel=1e-5)


def test_a_page_with_filled_masks_shows_no_warnings_of_paddle(finished: Path, tmp_path: Path) -> None:
    done = python(*ERNIE_GRAM, "report", str(finished), "--output", str(tmp_path / "page.html"), "--examples", "1")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def tuned(finetuned: Path, tmp_path: Path) -> Path:
    """A copy of the files of a fine-tuning that the page reads."""
    (tmp_path / "tuned").mkdir()
    for name in ("config.yaml", "log.jsonl", "result.json"):
        shutil.copy(finetuned / name, tmp_path / "tuned" / name)
    return tmp_path / "tuned"


def test_scores_in_percent_are_shown(tuned: Path, tmp_path: Path) -> None:
    result = json.loads((tuned / "result.json").read_text())
    del result["constant"]
    result["metric"] = {"name": "conlleval", "chooses": "f1", "unit": "percent"}
    result["scores"] = {"dev": {"f1": 71.25, "best_f1_thresh": 0.5, "found": 7}}
    (tuned / "result.json").write_text(json.dumps(result))
    page, _, curves = report(tmp_path, tuned)
    assert page.table_with("score", "tuned").rows[1:] == [["dev: f1", "71.25 %"], ["dev: best_f1_thresh", "0.5000"]]
    assert "dev: f1 %" in curves


HOSTILE = "$\\bad$</script><script>alert(1)</script>\"'&<img src=https://example.org/x>"


def test_text_of_files_cannot_become_markup_of_the_page(tuned: Path, tmp_path: Path) -> None:
    evaluations = {0: {"perplexity": 8.0, HOSTILE: 1.0}, 20: {"perplexity": math.nan, "ngram_perplexity": 10.0}}
    first = made_run(tmp_path / f"<b>{HOSTILE.replace('/', '_')}", evaluations, objective={HOSTILE: HOSTILE})
    other = made_run(tmp_path / "other", perplexities(7.0, 8.0))
    result = json.loads((tuned / "result.json").read_text())
    result["constant"]["answer"] = HOSTILE
    result["scores"]["dev"][HOSTILE] = 0.5
    (tuned / "result.json").write_text(json.dumps(result))
    with (other / "log.jsonl").open("a") as log:
        log.write(json.dumps({"kind": "train", "step": 30, "loss": HOSTILE, "explicit": 10**400, HOSTILE: 1.0}) + "\n")
    page, _, _ = report(tmp_path, first, other, tuned)
    assert_self_contained(page)
    assert page.text.count("<script>alert(1)") >= 8


def test_the_page_of_long_runs_is_small(tmp_path: Path) -> None:
    folders = []
    terms = ("explicit", "comprehensive", "generator", "rtd")
    for number in range(3):
        folder = made_run(tmp_path / f"run{number}", perplexities(50.0, 60.0), objective={"masking": f"m{number}"})
        values = dict.fromkeys((*terms, "loss", "learning_rate", "skipped", "sent_bytes", *METERS), 1.23456789)
        records = [{"kind": "train", "step": step, **values} for step in range(200, 100_000, 200)]
        records += [{"kind": "eval", "step": step, "perplexity": 9.87654321} for step in range(1000, 100_000, 1000)]
        (folder / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        folders.append(folder)
    _, _, curves = report(tmp_path, *folders)
    assert (tmp_path / "report.html").stat().st_size < 400_000
    points = curves["Loss term rtd"]["run0"]
    assert (len(points), points[0], points[-1]) == (150, (200, 1.23456789), (99800, 1.23456789))
    assert {title for title in curves if title.startswith("Loss term")} == {f"Loss term {name}" for name in terms}


def test_what_is_left_out_is_a_note(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", perplexities(50.0, 60.0))
    with (run / "log.jsonl").open("a") as log:
        log.write('[1]\n{"kind": "eval", "step": 20, "perpl')
    only_trained = made_run(tmp_path / "trained", {})
    (only_trained / "log.jsonl").write_text('{"kind": "train", "step": 1, "loss": 2.5}\n')
    begun = made_run(tmp_path / "begun", {})
    page, done, curves = report(tmp_path, run, only_trained, begun)
    expected = [
        f"{only_trained}: no evaluations in its log",
        f"{begun}: no records yet; left out",
    ]
    assert done.stderr.splitlines()[:2] == [f"note: {line}" for line in expected]
    assert all(line in page.text for line in expected)
    assert page.table_with("steps", "units, end").row("run")["units, end"] == "50"
    assert {*curves["Training loss"]} == {"run", "trained"}


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", perplexities(50.0, 60.0))
    tuned = made_run(tmp_path / "tuned", {20: {"score": 0.5}}, task="cola")
    (tuned / "result.json").write_text("{")
    begun = made_run(tmp_path / "begun", {})
    (tmp_path / "empty").mkdir()
    target = ["--output", str(tmp_path / "page.html"), "--examples", "0"]
    for arguments, key in (
        ([tmp_path / "empty"], tmp_path / "empty"),
        ([tmp_path / "nowhere"], tmp_path / "nowhere"),
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


def test_settings_and_texts_that_differ_and_where_the_runs_come_from_are_shown(tmp_path: Path) -> None:
    one, other, same = (
        made_run(tmp_path / name, perplexities(50.0, 60.0), objective={"masking": masking})
        for name, masking in (("one", "explicit"), ("other", "contiguous"), ("same", "explicit"))
    )
    for number, folder in enumerate((one, other)):
        (folder / "held_out.json").write_text(json.dumps({"text": str(number), "lexicon": ""}))
    (one / "starts.jsonl").write_text(json.dumps({"step": 10, "commit": "abc", "command": "pretrain <&>"}) + "\n")
    page, done, _ = report(tmp_path, one, other)
    assert [row[0] for row in page.table_with("setting", "one", "other").rows] == ["setting", "objective.masking"]
    assert page.table_with("commit", "command").rows[1:] == [["one", "10", "abc", "pretrain <&>"]]
    assert done.stderr.startswith("note: perplexities do not compare: the text of the held-out corpora")
    (same / "held_out.json").write_text((one / "held_out.json").read_text())
    page, done, _ = report(tmp_path, one, same)
    assert "The runs have the same settings." in page.text
    assert "do not compare" not in done.stderr
    (same / "vocab.txt").write_text("a\nc\n")
    assert "do not compare: the vocabulary differs" in report(tmp_path, one, same)[1].stderr
