"""The page on runs: what it shows is what the files have."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from ernie_gram import Model
from ernie_gram.pretraining import count_baselines
from ernie_gram.report import main
from ernie_gram.run.run_log import METERS, read_log
from tests.support.commands import call
from tests.support.reports import assert_self_contained, curves, made_run, perplexities, report
from tests.support.tiny_task import DEV_ROWS


def test_a_pre_training_is_shown_with_its_numbers_beside_those_of_counts(finished: Path, tmp_path: Path) -> None:
    page, done = report(tmp_path, finished)
    assert_self_contained(page)
    evaluations = [record for record in read_log(finished) if record["kind"] == "eval"]
    table = page.table_with("steps", "units, start")
    exact = table.exact("run")
    assert float(exact["units, start"]) == evaluations[0]["perplexity"]
    assert float(exact["units, end"]) == evaluations[-1]["perplexity"]
    assert float(exact["n-grams, end"]) == evaluations[-1]["ngram_perplexity"]
    assert float(exact["accuracy"]) == evaluations[-1]["accuracy"]
    assert table.row("run")["accuracy"] == f"{100 * evaluations[-1]['accuracy']:.2f} %"
    assert table.row("run")["steps"] == "24"
    for line in call(count_baselines.main, str(finished)).stdout.splitlines():
        name, units, ngrams = re.findall(r"(.+): perplexity (\d+), over n-grams (\d+)", line)[0]
        counts = table.exact(f"counts: {name}")
        assert (f"{float(counts['units, end']):.0f}", f"{float(counts['n-grams, end']):.0f}") == (units, ngrams)
    points = curves(page)["Held-out perplexity, all masked units"]["run"]
    assert points == " ".join(f"{record['step']}:{record['perplexity']:.6g}" for record in evaluations)
    assert not [title for title in curves(page) for meter in METERS if meter in title]
    steps = [record["step"] for record in read_log(finished) if record["kind"] == "train"]
    rates = curves(page)["Learning rate"]["run"].split()
    assert [int(point.partition(":")[0]) for point in rates] == steps
    size = (tmp_path / "report.html").stat().st_size
    assert done.stdout == f"written  {tmp_path / 'report.html'}: {size / 1000:,.0f} KB\n"
    assert {"masking", "mask_fraction"} <= {row[0] for row in page.table_with("setting", "run").rows}


def test_what_the_lexicon_holds_is_shown(finished: Path, tmp_path: Path) -> None:
    page, _ = report(tmp_path, finished)
    rows = [line.split("\t") for line in (finished / "lexicon.tsv").read_text().splitlines()[1:]]
    counts = sorted(int(count) for ngram, count, _ in rows if ngram.count(" ") == 1)
    row = page.table_with("length", "occurrences").row("2 words")
    assert row["n-grams"] == f"{len(counts):,}"
    assert row["occurrences"] == f"{sum(counts):,}"
    assert row["least"] == f"{counts[0]:,}"
    top = max((row for row in rows if row[0].count(" ") == 1), key=lambda row: int(row[1]))
    assert row["most frequent 12"].startswith(f"{top[0]} ({int(top[1]):,}), ")
    held_out = json.loads((finished / "held_out.json").read_text())
    share = 1 - (held_out["units"] - held_out["ngram_units"]) / held_out["tokens"]
    assert f"{share:.1%} of the held-out tokens" in page.text


def test_corpora_that_are_not_those_of_the_run_are_not_used(finished: Path, tmp_path: Path) -> None:
    settings = yaml.safe_load((finished / "config.yaml").read_text())
    other = shutil.copytree(finished, tmp_path / "other")
    settings["paths"] |= {"held_out": settings["paths"]["corpus"], "corpus": str(tmp_path / "moved")}
    (other / "config.yaml").write_text(yaml.safe_dump(settings))
    page, done = report(tmp_path, other, examples=1)
    assert f"note: no filled masks: {settings['paths']['held_out']} is not the corpus that other was" in done.stderr
    assert f"not computed: {tmp_path / 'moved'}: no corpus there" in page.text


def test_the_results_of_an_experiment_are_not_replaced_by_its_report(tmp_path: Path) -> None:
    made_run(tmp_path / "sweep" / "seed=1", perplexities(50.0, 60.0))
    results = tmp_path / "sweep" / "results.jsonl"
    results.write_text('{"run": "seed=1", "varied": {}, "seed": 1, "result": {"score": 1}}\n')
    done = call(main, str(results.parent), "--output", str(results), "--overwrite")
    assert f"--output: {results} is also an input" in done.stderr
    assert results.read_text().startswith('{"run"')
    assert "there is no such folder" in call(main, str(results.parent), "--output", f"{tmp_path}/new/").stderr


def test_held_out_sentences_are_read_by_the_last_checkpoint(finished: Path, tmp_path: Path) -> None:
    page, done = report(tmp_path, finished, examples=2)
    assert_self_contained(page)
    assert done.stderr == ""
    tables = [table for table in page.tables if table.rows[0] == ["rank", "run"]]
    assert len(tables) == 4
    first, second = (table.rows[-1][0] for table in tables[:2])
    assert " " in first or " " in second
    # After the explanation is a sentence, up to the caption of its first table.
    sentence = " ".join(page.text.split()).partition("unit and its probability.")[2].partition(f"{first}rank")[0]
    found = re.fullmatch(f"(.*) {re.escape(first)} (.*) {re.escape(second)} (.*)", sentence)
    assert found is not None, sentence
    model = Model.load(finished)
    guesses = model.fill_mask(f"{found[1]} [MASK] {found[2]} [MASK] {found[3]}", top=10_000)
    for table, each in zip(tables[:2], guesses, strict=True):
        assert [row[1] for row in table.rows[1:6]] == [f"{guess.unit}{guess.probability:.1%}" for guess in each[:5]]
        probability = next(guess.probability for guess in each if guess.unit == table.rows[-1][0])
        assert float(table.titles[-1][1]) == pytest.approx(probability, rel=1e-5)
        assert float(table.rows[-1][1].removesuffix("%")) == pytest.approx(100 * float(table.titles[-1][1]), rel=5e-3)


def test_models_that_cannot_read_the_sentences_are_noted(finished: Path, tmp_path: Path) -> None:
    without = tmp_path / "without"
    without.mkdir()
    for name in ("config.yaml", "log.jsonl"):
        shutil.copy(finished / name, without / name)
    page, done = report(tmp_path, without, examples=1)
    assert done.stderr.startswith("note: without: no filled masks: ")
    assert done.stderr.count("\n") == 1
    assert "Filled masks" not in page.text
    # The sentences are those of a run with explicit masking, whichever comes first.
    contiguous = made_run(
        tmp_path / "contiguous",
        perplexities(50.0, 60.0),
        paths={"held_out": str(tmp_path / "moved")},
        objective={"masking": "contiguous"},
    )
    shutil.copy(finished / "vocab.txt", contiguous / "vocab.txt")
    page, done = report(tmp_path, contiguous, finished, examples=1)
    assert done.stderr.startswith("note: contiguous: no filled masks: ")
    assert done.stderr.count("\n") == 1
    assert "Filled masks" in page.text
    other = made_run(tmp_path / "other", perplexities(50.0, 60.0), paths={"held_out": str(tmp_path / "moved")})
    _, done = report(tmp_path, other, examples=1)
    assert f"note: no filled masks: {tmp_path / 'moved'}: no corpus there" in done.stderr


def test_a_fine_tuning_is_shown_beside_the_most_frequent_label(
    tiny_task: Path, finetuned: Path, tmp_path: Path
) -> None:
    page, done = report(tmp_path, finetuned)
    assert_self_contained(page)
    assert done.stderr == ""
    result = json.loads((finetuned / "result.json").read_text())
    labels = [line.split("\t")[1] for line in (tiny_task / "data" / "dev.tsv").read_text().splitlines()[1:]]
    scores = page.table_with("dev: accuracy", "chosen step")
    assert float(scores.exact("run")["dev: accuracy"]) == result["scores"]["dev"]["accuracy"] == result["score"]
    assert float(scores.exact("always 0")["dev: accuracy"]) == pytest.approx(labels.count("0") / DEV_ROWS)
    confusion = page.table_with("predicted 0", "predicted 1")
    rows = {row[0]: list(map(int, row[1:])) for row in confusion.rows[1:]}
    assert {name: row[-1] for name, row in rows.items()} == {f"gold {x}": labels.count(x) for x in "01"}
    assert rows["gold 0"][0] + rows["gold 1"][1] == round(result["score"] * DEV_ROWS)
    for cells, titles in zip(rows.values(), confusion.titles[1:], strict=True):
        assert titles[1:-1] == [f"{cell / cells[-1]:.1%} of {cells[-1]}" for cell in cells[:-1]]
    evaluations = [record for record in read_log(finetuned) if record["kind"] == "eval"]
    points = curves(page)["dev: accuracy, %"]["run"].split()
    assert points == [f"{record['step']}:{100 * record['score']:.6g}" for record in evaluations]
    assert len([1 for each in page.attributes("circle") if each.get("class") == "best"]) == 1
    chosen = result["steps"]["chosen"]
    assert scores.row("run")["chosen step"] == f"{chosen} of 32"


def test_a_task_without_labels_is_shown_and_all_its_scores_are_folded(finetuned: Path, tmp_path: Path) -> None:
    tuned = tmp_path / "tuned"
    tuned.mkdir()
    shutil.copy(finetuned / "config.yaml", tuned / "config.yaml")
    records = read_log(finetuned)
    for record in records:
        if record["kind"] == "eval":
            record["dev_recall"] = 12.5
    (tuned / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    result = json.loads((finetuned / "result.json").read_text())
    del result["constant"], result["confusion"]
    result["metric"] = {"name": "conlleval", "chooses": "f1", "unit": "percent"}
    result["scores"] = {"dev": {"f1": 71.25, "recall": 66.5, "found": 7, "LOC_f1": 33.5}}
    (tuned / "result.json").write_text(json.dumps(result))
    page, _ = report(tmp_path, tuned)
    scores = page.table_with("dev: f1", "chosen step")
    assert scores.row("tuned")["dev: f1"] == "71.25 %"
    assert len(scores.rows) == 2
    assert {"dev: f1, %", "dev: recall, %"} < curves(page).keys()
    assert "dev: recall" in page.table_with("run", "step").rows[0]
    every = [["dev: f1", "71.25 %"], ["dev: recall", "66.50 %"], ["dev: LOC_f1", "33.50 %"]]
    assert page.table_with("score", "tuned").rows[1:] == every
    assert "predicted" not in page.text


def test_runs_that_differ_in_the_seed_share_a_row_and_settings_that_differ_come_first(tmp_path: Path) -> None:
    folders = [
        made_run(tmp_path / f"{name}_{seed}", perplexities(units + seed, 100.0), seed=seed, objective={"masking": name})
        for name, units in (("explicit", 200.0), ("contiguous", 300.0))
        for seed in (1, 2)
    ]
    page, done = report(tmp_path, *folders)
    table = page.table_with("steps", "units, end")
    assert [row[0] for row in table.rows] == ["run", "explicit", "contiguous"]
    assert table.row("explicit")["units, end"] == "201.5201.0 – 202.0"
    assert table.exact("explicit")["units, end"] == "mean of 201, 202"
    assert table.row("explicit")["steps"] == "202 seeds"
    differing = page.table_with("setting", "explicit", "contiguous")
    assert [row[0] for row in differing.rows] == ["setting", "seed", "objective.masking"]
    assert differing.row("seed") == {"setting": "seed", "explicit": "1, 2", "contiguous": "1, 2"}
    assert {*curves(page)["Training loss"]} == {folder.name for folder in folders}
    assert len(page.attributes("input")) == 2
    assert done.stderr == ""


def test_settings_that_are_equal_are_not_among_those_that_differ(tmp_path: Path) -> None:
    first, other, again = (
        made_run(tmp_path / name, perplexities(50.0, 60.0), objective={"masking": masking})
        for name, masking in (("first", "explicit"), ("other", "contiguous"), ("again", "explicit"))
    )
    page, _ = report(tmp_path, first, other)
    assert [row[0] for row in page.table_with("setting", "first", "other").rows] == ["setting", "objective.masking"]
    assert "All settings of these 2 runs" in page.text
    page, _ = report(tmp_path, first, again)
    assert "The runs have the same settings." in page.text


def test_a_folder_of_results_stands_for_its_runs_with_mean_and_range(tmp_path: Path) -> None:
    for seed in (1, 2):
        made_run(tmp_path / "ladder" / f"token_{seed}", perplexities(50.0, 60.0), seed=seed)
    records = [
        {
            "run": f"token_{seed}",
            "varied": {"rung": "token"},
            "seed": seed,
            "result": {"score": 3.0 + seed, "steps": 20},
        }
        for seed in (1, 2, 3)
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (tmp_path / "ladder" / "results.jsonl").write_text(lines + '{"run": "token_4", "va')
    page, done = report(tmp_path, tmp_path / "ladder")
    assert_self_contained(page)
    results = page.table_with("rung", "runs", "score")
    assert results.rows[1:] == [["token", "3", "54 – 6", "20"]]
    assert results.titles[1][1:3] == ["token_1, token_2, token_3", "mean of 4, 5, 6"]
    assert [row[0] for row in page.table_with("state").rows[1:]] == ["token_1", "token_2"]
    assert f"note: {tmp_path / 'ladder' / 'results.jsonl'}: left out, because incomplete: line 4\n" in done.stderr
    assert "because incomplete: line 4" in page.text
    # Also without the folders of the runs.
    shutil.rmtree(tmp_path / "ladder" / "token_1")
    shutil.rmtree(tmp_path / "ladder" / "token_2")
    page, _ = report(tmp_path, tmp_path / "ladder")
    assert page.table_with("rung", "runs", "score").rows[1][:2] == ["token", "3"]
