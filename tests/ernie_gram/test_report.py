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
from reader.lexicon.own_list import given_lexicon
from reader.tokenization.vocabulary_file import load_vocabulary
from tests.support.commands import call
from tests.support.reports import assert_self_contained, made_run, perplexities, report
from tests.support.tiny_task import DEV_ROWS


def test_a_pre_training_is_shown_with_its_numbers_beside_those_of_counts(finished: Path, tmp_path: Path) -> None:
    page, done, curves = report(tmp_path, finished)
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
    size = (tmp_path / "report.html").stat().st_size
    assert done.stdout == f"written  {tmp_path / 'report.html'}: {size / 1000:,.0f} KB\n"
    assert {"objective.masking", "objective.mask_fraction"} <= {
        row[0] for row in page.table_with("setting", "run").rows
    }


def test_corpora_that_are_not_those_of_the_run_are_not_used(finished: Path, tmp_path: Path) -> None:
    settings = yaml.safe_load((finished / "config.yaml").read_text())
    other = shutil.copytree(finished, tmp_path / "other")
    settings["paths"] |= {"held_out": settings["paths"]["corpus"], "corpus": str(tmp_path / "moved")}
    (other / "config.yaml").write_text(yaml.safe_dump(settings))
    page, done, _ = report(tmp_path, other, examples=1)
    assert f"note: no filled masks: {settings['paths']['held_out']} is not the corpus that other was" in done.stderr
    assert f"{tmp_path / 'moved'}: no corpus there" in done.stderr
    assert all(line.removeprefix("note: ") in page.text for line in done.stderr.splitlines())


def test_the_results_of_an_experiment_are_not_replaced_by_its_report(tmp_path: Path) -> None:
    made_run(tmp_path / "sweep" / "seed=1", perplexities(50.0, 60.0))
    results = tmp_path / "sweep" / "results.jsonl"
    results.write_text('{"run": "seed=1", "varied": {}, "seed": 1, "result": {"score": 1}}\n')
    done = call(main, str(results.parent), "--output", str(results), "--overwrite")
    assert f"--output: {results} is also an input" in done.stderr
    assert results.read_text().startswith('{"run"')
    assert "there is no such folder" in call(main, str(results.parent), "--output", f"{tmp_path}/new/").stderr


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
    confusion = page.table_with("predicted 0", "predicted 1")
    rows = {row[0]: list(map(int, row[1:])) for row in confusion.rows[1:]}
    assert {name: row[-1] for name, row in rows.items()} == {f"gold {x}": labels.count(x) for x in "01"}
    assert rows["gold 0"][0] + rows["gold 1"][1] == round(result["score"] * DEV_ROWS)
    evaluations = [record for record in read_log(finetuned) if record["kind"] == "eval"]
    lines = curves["dev: accuracy %"]
    assert lines["run"] == [(record["step"], 100 * record["score"]) for record in evaluations]
    chosen = result["steps"]["chosen"]
    assert [step for step, _ in lines["chosen"]] == [chosen]
    every = page.table_with("step", "dev: accuracy")
    assert [row[0] for row in every.rows[1:] if "(chosen)" in row[0]] == [f"{chosen} (chosen)"]
    assert [float(title[1]) for title in every.titles[1:]] == [record["score"] for record in evaluations]


def test_settings_that_are_equal_are_not_among_those_that_differ(tmp_path: Path) -> None:
    first, other, again = (
        made_run(tmp_path / name, perplexities(50.0, 60.0), objective={"masking": masking})
        for name, masking in (("first", "explicit"), ("other", "contiguous"), ("again", "explicit"))
    )
    page, _, _ = report(tmp_path, first, other)
    assert [row[0] for row in page.table_with("setting", "first", "other").rows] == ["setting", "objective.masking"]
    page, _, _ = report(tmp_path, first, again)
    assert "The runs have the same settings." in page.text


def test_a_folder_of_results_stands_for_its_runs_with_mean_and_range(tmp_path: Path) -> None:
    for seed in (1, 2):
        made_run(tmp_path / "sweep" / f"token_{seed}", perplexities(50.0, 60.0), seed=seed)
    records = [
        {"run": f"token_{seed}", "varied": {"rung": "token"}, "seed": seed, "result": {"score": 3 + seed, "text": "x"}}
        for seed in (1, 2, 3)
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (tmp_path / "sweep" / "results.jsonl").write_text(lines + '{"run": "token_4", "va')
    page, done, _ = report(tmp_path, tmp_path / "sweep")
    assert_self_contained(page)
    results = page.table_with("rung", "runs", "score")
    assert results.rows[1][:3] == ["token", "3", "5 4 – 6"]
    assert results.titles[1][2] == "mean of 4, 5, 6"
    assert [row[0] for row in page.table_with("starts from").rows[1:]] == ["token_1", "token_2"]
    assert f"{tmp_path / 'sweep' / 'results.jsonl'}: left out, because incomplete: line 4" in done.stderr
    # Also without the folders of the runs.
    shutil.rmtree(tmp_path / "sweep" / "token_1")
    shutil.rmtree(tmp_path / "sweep" / "token_2")
    page, _, _ = report(tmp_path, tmp_path / "sweep")
    assert page.table_with("rung", "runs", "score").rows[1][:2] == ["token", "3"]


@pytest.mark.parametrize("own", [False, True])
def test_what_the_lexicon_holds_and_where_its_counts_are_from_is_shown(
    finished: Path, tmp_path: Path, own: bool
) -> None:
    run = shutil.copytree(finished, tmp_path / "copy")
    if own:
        (tmp_path / "phrases.txt").write_text("of the\nin the\n")
        given_lexicon(tmp_path / "phrases.txt", load_vocabulary(run / "vocab.txt")).save(run / "lexicon.tsv")
    page, _, _ = report(tmp_path, run)
    rows = [line.split("\t") for line in (run / "lexicon.tsv").read_text().splitlines()[1:]]
    counts = sorted(int(count) for ngram, count, _ in rows if ngram.count(" ") == 1)
    row = page.table_with("length", "occurrences").row("2 words")
    assert (row["n-grams"], row["occurrences"], row["least"]) == (
        f"{len(counts):,}",
        f"{sum(counts):,}",
        f"{counts[0]:,}",
    )
    top = max((row for row in rows if row[0].count(" ") == 1), key=lambda row: int(row[1]))
    assert row["most frequent"].startswith(f"{top[0]} ({int(top[1]):,}), ")
    held_out = json.loads((run / "held_out.json").read_text())
    share = 1 - (held_out["units"] - held_out["ngram_units"]) / held_out["tokens"]
    assert f"{share:.1%} of the held-out tokens" in page.text
    assert ("phrases.txt" in page.text) == own


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


def test_models_that_cannot_fill_masks_are_noted(finished: Path, tmp_path: Path) -> None:
    # The texts are those of a run with explicit masking, whichever comes first.
    contiguous = made_run(
        tmp_path / "contiguous",
        perplexities(50.0, 60.0),
        paths={"held_out": str(tmp_path / "moved")},
        objective={"masking": "contiguous"},
    )
    shutil.copy(finished / "vocab.txt", contiguous / "vocab.txt")
    page, done, _ = report(tmp_path, contiguous, finished, examples=1)
    assert done.stderr.startswith("note: contiguous: no filled masks: ")
    assert done.stderr.count("\n") == 1
    assert "Filled masks" in page.text
    page, done, _ = report(tmp_path, contiguous, examples=1)
    assert f"note: no filled masks: {tmp_path / 'moved'}: no corpus there" in done.stderr
    assert "Filled masks" not in page.text


def test_scores_in_percent_and_many_labels_are_shown(finetuned: Path, tmp_path: Path) -> None:
    tuned = tmp_path / "tuned"
    tuned.mkdir()
    for name in ("config.yaml", "log.jsonl"):
        shutil.copy(finetuned / name, tuned / name)
    result = json.loads((finetuned / "result.json").read_text())
    del result["constant"]
    result["metric"] = {"name": "conlleval", "chooses": "f1", "unit": "percent"}
    result["scores"] = {"dev": {"f1": 71.25, "best_f1_thresh": 0.5, "found": 7}}
    result["confusion"] = {"dev": {f"l{i}": {f"l{i}": 9, "l0": i} for i in range(1, 20)}}
    (tuned / "result.json").write_text(json.dumps(result))
    page, _, curves = report(tmp_path, tuned)
    assert page.table_with("score", "tuned").rows[1:] == [["dev: f1", "71.25 %"], ["dev: best_f1_thresh", "0.5000"]]
    assert "dev: f1 %" in curves
    assert page.table_with("gold", "predicted").rows[1] == ["l19", "l0", "19"]
