"""Tables and figures of a study, from made-up results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes

from reader.errors import InputError
from tasks.studies.study_file import read_study
from tasks.studies.summaries import Summary
from tasks.studies.tables import report
from tasks.study_tables import main
from tests.support.commands import ROOT, call

STUDY = {
    "title": "Made up",
    "seeds": [1, 2, 3],
    "reference": "a",
    "corpora": {"corpus": {}, "held_out": {"text": "held_out"}},
    "variants": {name: {"config": "x.yaml", "what": f"masking {name}"} for name in "abc"},
    "finetuning": {"seeds": [1, 2], "tasks": {"sst2": {}, "mrpc": {}}},
}


def model(variant: str, seed: int, ngrams: float, cpu: float) -> dict[str, Any]:
    curve = [
        {"step": step, "ngram_perplexity": value, "perplexity": 50.0} for step, value in ((0, 900.0), (10, ngrams))
    ]
    numbers = {"ngram_perplexity": ngrams, "perplexity": 50.0, "accuracy": 0.25, "steps": 10}
    of = {"run": f"{variant}_{seed}", "kind": "pre-training", "variant": variant, "seed": seed, "digest": ""}
    return {**of, "result": {**numbers, "cpu_seconds_per_step": cpu}, "curve": curve}


def score(variant: str, seed: int, task: str, number: int, value: float) -> dict[str, Any]:
    of = {"run": f"{variant}_{seed},{task},{number}", "kind": "fine-tuning", "variant": variant, "seed": seed}
    return {**of, "task": task, "finetuning_seed": number, "digest": "", "result": {"score": value}}


def records() -> list[dict[str, Any]]:
    counts = {
        f"{name} neighbour{'s' * (name == 'both')}, {what}": 7.0
        for name in ("left", "both")
        for what in ("n-grams", "units")
    }
    counts |= {"unit frequencies, n-grams": 9.0, "unit frequencies, units": 8.0}
    made = [model("a", 1, 100.0, 1.0), model("a", 2, 300.0, 1.0), model("a", 3, 200.0, 1.0), model("b", 1, 100.0, 2.0)]
    for seed in (1, 2, 3):
        for number in (1, 2):
            made += [score("a", seed, task, number, 60.0 + seed + number) for task in ("sst2", "mrpc")]
    made += [score("b", 1, "sst2", 1, 64.0), score("b", 1, "sst2", 2, 66.0), score("b", 2, "sst2", 1, 60.0)]
    of = {"run": "counts", "kind": "counts", "corpus": "corpus", "held_out": "held_out", "seed": 1, "digest": ""}
    return [*made, {**of, "result": counts}]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(json.dumps(STUDY))
    return path


def test_seeds_of_other_studies_in_the_same_results_are_left_out(tmp_path: Path) -> None:
    finetuning = STUDY["finetuning"] | {"seeds": [2]}  # type: ignore[operator]
    path = tmp_path / "study.yaml"
    path.write_text(json.dumps({**STUDY, "seeds": [2], "finetuning": finetuning}))
    counts = records()[-1]
    lines = report(Summary(read_study(str(path)), [*records(), {**counts, "seed": 2}])).splitlines()
    [costs] = [line for line in lines if line.startswith("| a | masking a |")]
    assert "| 900 | 300 | 50 | 50 | - | 25.0% |" in costs
    assert "| a | 64.0 | 64.0 | 64.00 |" in lines
    assert "| corpus | held_out | left neighbour | 7 | 7 |" in "\n".join(lines)


def test_the_tables_show_means_ranges_and_paired_differences(study: Path) -> None:
    text = report(Summary(read_study(str(study)), records()))
    assert "Equal CPU time is 10 s." in text
    lines = text.splitlines()
    [a] = [line for line in lines if line.startswith("| a | masking a |")]
    assert "| 900 | 200 (100 - 300) | 50 | 50 (50 - 50) | - | 25.0% (25.0% - 25.0%) | 1.000 | 200 (100 - 300) |" in a
    # Half the steps of b: the geometric mean of 900 and 100.
    [b] = [line for line in lines if line.startswith("| b | masking b |")]
    assert "| 900 | 100 [1 of 3] | 50 | 50 [1 of 3] | - | 25.0% [1 of 3] | 2.000 | 300 [1 of 3] |" in b
    assert "Without results yet: c." in text
    assert not [line for line in lines if line.startswith("| c ")]
    # The perplexities of b and a with seed 1 are 100 and 100.
    assert "| b | +0.0 % [1 of 3] | +0.0 % [1 of 3] |" in text
    assert "| corpus | held_out | left neighbour | 7 [1 of 3] | 7 [1 of 3] |" in text
    assert "| a | 63.5 ± 1.0 | 63.5 ± 1.0 | 63.50 (62.50 - 64.50) |" in text
    assert "| b | 63.3 ± 3.1 [3 of 6] | - [0 of 6] | - [0 of 3] |" in text
    # Seed 1: 64 - 62 and 66 - 63; seed 2: 60 - 63.
    assert "| b | -0.2 (-3.0 to +2.5) [2 of 3] | - | - |" in text


def test_a_given_model_is_paired_with_every_seed_of_the_reference(tmp_path: Path) -> None:
    """Also in the mean over the tasks; and if it is the reference itself."""
    variants = {"a": {"config": "x.yaml", "what": "trained"}, "given": {"start": True, "what": "as it is"}}
    values = {"a": {1: 50.0, 2: 60.0, 3: 70.0}, "given": {1: 60.0}}
    made = [
        score(name, seed, task, number, value)
        for name, of_seeds in values.items()
        for seed, value in of_seeds.items()
        for task in ("sst2", "mrpc")
        for number in (1, 2)
    ]
    for reference, other, signs in (("a", "given", (10.0, 0.0, -10.0)), ("given", "a", (-10.0, 0.0, 10.0))):
        path = tmp_path / f"{reference}.yaml"
        path.write_text(json.dumps(STUDY | {"variants": variants, "reference": reference}))
        summary = Summary(read_study(str(path)), made)
        assert summary.differences(other, "sst2") == summary.mean_differences(other) == list(signs)


def test_a_single_score_has_no_deviation(study: Path) -> None:
    found = [record for record in records() if record["kind"] != "fine-tuning"]
    [first, *_] = [record for record in records() if record["kind"] == "fine-tuning" and record["variant"] == "a"]
    text = report(Summary(read_study(str(study)), [*found, first]))
    assert "| a | 62.0 [1 of 6] | - [0 of 6] |" in text


def test_random_weights_do_not_decide_what_equal_cpu_time_is(study: Path) -> None:
    untrained = model("c", 1, 900.0, 0.5)
    untrained["result"]["steps"] = 1
    text = report(Summary(read_study(str(study)), [*records(), untrained]))
    assert "Equal CPU time is 10 s." in text
    assert "| c | +800.0 % [1 of 3] | +0.0 % [1 of 3] |" in text


def test_the_figure_has_the_counts_of_its_study(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tasks.studies import figures

    drawn: list[Axes] = []
    monkeypatch.setattr(figures, "save_figure", lambda figure, axes, target: drawn.extend(axes))
    [counted] = [record for record in records() if record["kind"] == "counts"]
    other = counted | {"corpus": "of another study", "result": {"left neighbour, n-grams": 900.0}}
    assert figures.draw_perplexities(Summary(read_study(str(study)), [*records(), other]), tmp_path / "figure.png")
    [line] = [line for line in drawn[0].lines if line.get_label() == "counts of left neighbours"]
    assert list(line.get_ydata()) == [7, 7]


def test_the_command_needs_only_the_file_of_results(study: Path, tmp_path: Path) -> None:
    results, output = tmp_path / "results.jsonl", tmp_path / "tables"
    command = [str(study), "--results", str(results), "--output", str(output)]
    empty = call(main, *command)
    assert (empty.returncode, empty.stderr.count("\n")) == (2, 1)
    assert "no results; `ernie-gram study " in empty.stderr
    results.write_text("".join(json.dumps(record) + "\n" for record in records()) + '{"run"')
    done = call(main, *command)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in output.iterdir()) == ["perplexities.png", "results.md", "scores.png"]
    assert (output / "scores.png").read_bytes().startswith(b"\x89PNG")
    assert "## Fine-tuning" in (output / "results.md").read_text()
    assert call(main, *command).returncode == 0
    tables, refusal = output / "results.md", "already exists; choose another --output or pass --overwrite"
    tables.write_text("# Mine\n")
    assert call(main, *command).stderr == f"error: {tables}: {refusal}\n"
    assert tables.read_text() == "# Mine\n"
    tables.unlink()
    assert f"{output / 'perplexities.png'}: {refusal}" in call(main, *command).stderr
    assert call(main, *command, "--overwrite").returncode == 0
    folder = call(main, str(study), "--results", str(output), "--output", str(tmp_path / "new"))
    assert folder.stderr == f"error: {output}: is a folder; give the path of a file\n"
    others = [{**record, "task": "cola"} if "task" in record else record for record in records()]
    results.write_text("".join(json.dumps(record) + "\n" for record in others))
    assert f"{results}: has no scores on the tasks of {study}, but on cola" in call(main, *command).stderr


def test_a_study_without_fine_tuning_has_tables(tmp_path: Path) -> None:
    study, results, output = tmp_path / "study.yaml", tmp_path / "results.jsonl", tmp_path / "tables"
    study.write_text(json.dumps({key: value for key, value in STUDY.items() if key != "finetuning"}))
    results.write_text(json.dumps(model("a", 1, 100.0, 1.0)) + "\n")
    done = call(main, str(study), "--results", str(results), "--output", str(output))
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in output.iterdir()) == ["perplexities.png", "results.md"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("5: 6", "5: 5 is none of title, seeds"),
        ("corpora: {corpus: {text: 5}}", "corpora.corpus.text: 5 is none of train, held_out"),
        ("finetuning: {tasks: {5: {}}}", "no task '5'"),
    ],
)
def test_a_number_in_place_of_a_name_is_an_error_of_one_line(tmp_path: Path, more: str, message: str) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(f"reference: a\nvariants: {{a: {{start: true}}}}\n{more}\n")
    with pytest.raises(InputError) as error:
        read_study(str(path))
    assert str(error.value).startswith(f"{path}: {message}")


def test_two_tasks_of_one_name_are_refused(tmp_path: Path, tiny_task: Path) -> None:
    path, own = tmp_path / "study.yaml", (tiny_task / "data" / "task.yaml").read_text()
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(f"name: mine\n{own}")
    tasks = f"{{{tmp_path}/a.yaml: {{}}, {tmp_path}/b.yaml: {{}}}}"
    path.write_text(f"reference: a\nvariants: {{a: {{start: true}}}}\nfinetuning: {{tasks: {tasks}}}\n")
    with pytest.raises(InputError) as error:
        read_study(str(path))
    assert str(error.value) == f"{path}: finetuning.tasks: two tasks have the name mine"


def test_every_study_of_the_project_is_valid_and_names_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tasks.studies import plan
    from tasks.studies.preparation import Prepared
    from tasks.studies.study_file import STUDIES

    # Its variants are those of the study whose file of results it shares, and explicit masking.
    explicit = read_study(str(ROOT / "docs" / "results" / "warm_start_explicit.yaml"))
    variants = read_study("warm_start").variants
    assert {**variants, **explicit.variants} == {**variants, "explicit": explicit.variants["explicit"]}
    assert explicit.tasks == read_study("warm_start").tasks
    names = {path.stem for path in STUDIES.glob("*.yaml")}
    assert names == {"ladder", "lexicon", "precision", "warm_start", "chinese"}
    for name in names:
        study = read_study(name)
        assert study.needs_start == (name == "warm_start")
        assert len(study.seeds) == len(study.finetuning_seeds) == 3
        # All settings and their files, without data and without a given model.
        monkeypatch.setattr(plan, "_files", lambda task, data: {})
        monkeypatch.setattr(plan, "_model_digest", lambda model: "")
        plan.check_settings(Prepared(study, tmp_path, {}, tmp_path), tmp_path, tmp_path)
