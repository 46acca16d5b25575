"""The command for studies: what it trains and records, how it resumes, and what it refuses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ernie_gram.experiments import processes
from ernie_gram.pretraining.prepare import HELD_OUT
from ernie_gram.run.run_folder import lock_output
from reader.system.lock_files import locked_name
from tasks.study import main
from tests.support.commands import Done, call, kill_when
from tests.support.made_once import made_once
from tests.support.task_files import write_json
from tests.support.toy_study import train_here, without_times, write_study

Run = Callable[..., Done]


def options(built: Path, tiny_task: Path, output: Path) -> list[str]:
    data = ["--input", str(built / "train.txt"), "--held_out", str(built / "held_out.txt")]
    return ["--output", str(output), *data, "--data", str(tiny_task / "data"), "--threads", "1"]


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command with the trainings in this process."""
    monkeypatch.setattr(processes, "train_each", train_here)
    return lambda *arguments: call(main, *arguments)


@pytest.fixture
def prepared(finished_study: Path, built: Path, tiny_task: Path, tmp_path: Path) -> list[str]:
    """Options of a study in `out` of the test's folder, where what the finished study prepared is there already."""
    shutil.copytree(finished_study / "out" / "prepared", tmp_path / "out" / "prepared")
    return options(built, tiny_task, tmp_path / "out")


@pytest.fixture(scope="module")
def finished_study(built: Path, tiny_task: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished study, with study.yaml and results.jsonl. Tests must not change it."""

    def make(folder: Path) -> None:
        path = write_study(folder, tiny_task / "data" / "task.yaml")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(processes, "train_each", train_here)
            done = call(main, str(path), *options(built, tiny_task, folder / "out"))
        assert done.returncode == 0, done.stderr

    return made_once(tmp_path_factory, "finished_study", make)


def test_each_model_is_fine_tuned_after_its_pretraining(finished_study: Path) -> None:
    records = [json.loads(line) for line in (finished_study / "out" / "results.jsonl").read_text().splitlines()]
    assert [record["run"] for record in records] == [
        *("corpus corpus", "corpus held_out", "counts corpus held_out 1"),
        *(
            name
            for variant in ("explicit_1", "contiguous_1")
            for name in (variant, *(f"{variant},task,seed={number}" for number in (1, 2)))
        ),
    ]
    by_name = {record["run"]: record for record in records}
    model, tuned = by_name["explicit_1"], by_name["explicit_1,task,seed=2"]
    assert [each["step"] for each in model["curve"]] == [0, 3, 6]
    assert model["curve"][-1]["ngram_perplexity"] == model["result"]["ngram_perplexity"] > 1
    assert model["result"]["cpu_seconds_per_step"] > 0
    assert model["settings"]["trainer.max_steps"] == 6
    assert (tuned["variant"], tuned["seed"], tuned["task"], tuned["finetuning_seed"]) == ("explicit", 1, "task", 2)
    assert tuned["data"]["model"] == model["digest"]
    assert 0 < tuned["result"]["dev.accuracy"] <= 100
    counts = by_name["counts corpus held_out 1"]["result"]
    assert counts["unit frequencies, n-grams"] > counts["both neighbours, n-grams"] > 1
    assert 0 < by_name["corpus corpus"]["result"]["token_share"] < 1
    assert list((finished_study / "out" / "finetuned").iterdir()) == []


def test_a_killed_study_that_is_resumed_gives_the_same_results(
    finished_study: Path, built: Path, tiny_task: Path, tmp_path: Path, study: Run
) -> None:
    output = tmp_path / "out"
    command = [str(finished_study / "study.yaml"), *options(built, tiny_task, output)]
    # During a pre-training, a fine-tuning, and the pre-training of another model.
    first = ("models/explicit_1/step_*", "finetuned/explicit_1,task,seed=1/config.yaml")
    for half_done in (*first, "models/contiguous_1/step_*"):
        assert not (output / "models" / "contiguous_1").exists()
        kill_when(["-m", "tasks.study", *command], lambda path=half_done: list(output.glob(path)))
    results = output / "results.jsonl"
    with results.open("a") as file:
        file.write('{"run": "expl\u2028')
    with results.open("ab") as binary:
        binary.write("中".encode()[:2])  # killed within a character
    done = study(*command)
    assert done.returncode == 0, done.stderr
    assert f"warning: {results}: its last line is broken and was removed" in done.stderr
    assert without_times(results) == without_times(finished_study / "out" / "results.jsonl")
    assert f"{results}: 9 results; missing: none" in done.stdout


def test_a_recorded_result_counts_even_if_its_folder_is_gone(
    finished_study: Path, tmp_path: Path, study: Run, prepared: list[str]
) -> None:
    output = tmp_path / "out"
    lines = (finished_study / "out" / "results.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "all.jsonl").write_text("".join(lines))
    command = [str(finished_study / "study.yaml"), *prepared]
    done = study(*command, "--results", str(tmp_path / "all.jsonl"))
    assert "0 to train" in done.stdout, done.stderr
    assert not (output / "models").exists()
    # One fine-tuning is missing: its model is trained again, and has no second line.
    missing = [line for line in lines if '"contiguous_1,task,seed=2"' not in line]
    (tmp_path / "some.jsonl").write_text("".join(missing))
    checked = study(*command, "--results", str(tmp_path / "some.jsonl"), "--check")
    assert "8 results; missing: 1 fine-tuning" in checked.stdout
    done = study(*command, "--results", str(tmp_path / "some.jsonl"))
    assert "2 to train" in done.stdout, done.stderr
    assert [each.name for each in (output / "models").iterdir()] == ["contiguous_1"]
    found = {each["run"]: each for each in without_times(tmp_path / "some.jsonl")}
    assert found == {each["run"]: each for each in without_times(tmp_path / "all.jsonl")}


def test_studies_with_one_file_of_results_share_what_they_have_in_common(
    finished_study: Path, tiny_task: Path, tmp_path: Path, study: Run, prepared: list[str]
) -> None:
    results = tmp_path / "results.jsonl"
    shutil.copy(finished_study / "out" / "results.jsonl", results)
    explicit = json.loads((finished_study / "study.yaml").read_text())["variants"]["explicit"]
    slow = explicit | {"what": "fine-tuned slowly", "finetuning": {"optimizer.learning_rate": 1e-5}}
    path = write_study(tmp_path, tiny_task / "data" / "task.yaml", variants={"explicit": explicit, "slow": slow})
    done = study(str(path), *prepared, "--results", str(results))
    assert "3 to train" in done.stdout, done.stderr
    records = {record["run"]: record for record in without_times(results)}
    assert len(records) == 9 + 3
    assert records["slow_1"]["result"] == records["explicit_1"]["result"]
    assert records["slow_1,task,seed=1"]["settings"]["optimizer.learning_rate"] == 1e-5
    assert records["explicit_1,task,seed=1"]["settings"]["optimizer.learning_rate"] > 1e-5


def test_only_finished_models_are_fine_tuned_on_request_and_kept_results_must_fit(
    finished_study: Path, tmp_path: Path, study: Run, prepared: list[str]
) -> None:
    output = tmp_path / "out"
    shutil.copytree(finished_study / "out" / "models" / "contiguous_1", output / "models" / "contiguous_1")
    command = [str(finished_study / "study.yaml"), *prepared, "--finished_only", "--keep"]
    done = study(*command)
    assert done.returncode == 0, done.stderr
    assert "missing: 1 pre-training, 2 fine-tuning" in done.stdout
    assert {each.name for each in (output / "finetuned").iterdir()} == {
        f"contiguous_1,task,seed={number}" for number in (1, 2)
    }
    # With another file of results, those of the kept folders are taken, unless they are of other data.
    done = study(*command, "--results", str(tmp_path / "second.jsonl"))
    assert without_times(tmp_path / "second.jsonl") == without_times(output / "results.jsonl"), done.stderr
    kept = output / "finetuned" / "contiguous_1,task,seed=2"
    result = json.loads((kept / "result.json").read_text())
    result.setdefault("made_from", {})["data.dev"] = "0" * 64
    (kept / "result.json").write_text(json.dumps(result))
    done = study(*command, "--results", str(tmp_path / "third.jsonl"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"{kept}: has the result of another run (data.dev: 000000000000 in result.json, " in done.stderr
    assert not (tmp_path / "third.jsonl").exists()


def test_a_model_whose_last_checkpoint_is_missing_is_not_finished(
    finished_study: Path, tmp_path: Path, study: Run, prepared: list[str]
) -> None:
    """Its log has the last evaluation, also if the disk was too full for the checkpoint."""
    output = tmp_path / "out"
    models = shutil.copytree(finished_study / "out" / "models", output / "models")
    shutil.rmtree(models / "contiguous_1" / "step_6")
    done = study(str(finished_study / "study.yaml"), *prepared, "--finished_only")
    assert done.returncode == 0, done.stderr
    assert "missing: 1 pre-training, 2 fine-tuning" in done.stdout


def test_results_of_other_settings_or_of_another_text_are_refused(
    finished_study: Path, tiny_task: Path, tmp_path: Path, study: Run, prepared: list[str]
) -> None:
    task = tiny_task / "data" / "task.yaml"
    before = (finished_study / "out" / "results.jsonl").read_text()
    results = tmp_path / "results.jsonl"
    output = tmp_path / "out"
    common = [*prepared, "--results", str(results)]
    other = json.loads(before.splitlines()[0]) | {"digest": "0"}
    other["data"]["text"] = "0" * 64
    other_text = json.dumps(other) + "\n"
    changed = json.loads((finished_study / "study.yaml").read_text())["variants"]
    changed["contiguous"]["options"]["optimizer.learning_rate"] = 1e-3
    for content, changes, message in (
        (before, {"variants": changed}, "result of contiguous_1 with optimizer.learning_rate 0.003, not 0.001; give"),
        (other_text, {}, "has the result of corpus corpus with text 000000000000, not "),
        (f"{before}{before.splitlines()[0]}\n", {}, "line 10: a second result of corpus corpus"),
        (f"half\n{before}", {}, "line 1: not a result of a study"),
        (before, {"lexicons": {"lexicon": {"top": "2:30"}}}, "lexicon.tsv has top {2: 400, 3: 200}, the study {2: 30}"),
        (
            before,
            {"lexicons": {"lexicon": {"top": "3:200, 2:400", "max_ngram_tokens": 3}}},
            "lexicon.tsv has max_ngram_tokens 8, the study 3",
        ),
        (
            before,
            {"lexicons": {"lexicon": {}}},
            "lexicon.tsv has top {2: 400, 3: 200}, the study {2: 200000, 3: 100000",
        ),
        (
            before,
            {"lexicons": {"lexicon": {"top": "2:400,3:200", "segmenter": "char"}}},
            "lexicon.tsv has segmenter jieba, the study char; choose",
        ),
        (before, {"vocabulary": {"size": 999}}, "vocab.txt has size 1000, the study 999; choose"),
        (before, {"vocabulary": {}}, "vocab.txt has size 1000, the study 30000; choose another --output"),
        (
            before,
            {"vocabulary": {"size": 1000, "cased": True}},
            "vocab.txt has lowercase True, the study False; choose",
        ),
        (
            before,
            {"reference": "explict"},
            "reference: 'explict' is none of explicit, contiguous; did you mean explicit?",
        ),
        (before, {"sedes": [1]}, "sedes: 'sedes' is none of title, seeds"),
        (before, {"seeds": [1, 1]}, "seeds: expected a list of distinct seeds"),
    ):
        results.write_text(content)
        path = write_study(tmp_path, task, **changes)
        done = study(str(path), *common)
        assert done.returncode == 2, message
        assert message in done.stderr
        assert done.stderr.count("\n") == 1
        assert not (output / "models").exists()


def test_the_size_of_a_vocabulary_whose_options_are_not_recorded_is_checked(
    finished_study: Path, tiny_task: Path, tmp_path: Path, study: Run, prepared: list[str]
) -> None:
    (tmp_path / "out" / "prepared" / "vocab.txt.json").unlink()
    results = ["--results", str(finished_study / "out" / "results.jsonl")]
    count = len((tmp_path / "out" / "prepared" / "vocab.txt").read_text(encoding="utf-8").splitlines())
    for vocabulary, message in (
        ({"size": count - 1}, f"vocab.txt has size {count}, the study {count - 1}; choose another --output"),
        ({"size": 1000}, ""),
        ({}, ""),
    ):
        path = write_study(tmp_path, tiny_task / "data" / "task.yaml", vocabulary=vocabulary)
        done = study(str(path), *prepared, *results)
        assert (done.returncode, message in done.stderr) == (2 if message else 0, True), done.stderr


def test_another_text_than_that_of_the_corpora_is_refused(
    finished_study: Path, built: Path, tmp_path: Path, study: Run, prepared: list[str]
) -> None:
    command = [str(finished_study / "study.yaml"), *prepared]
    copy = shutil.copy(built / "held_out.txt", tmp_path)
    other = [str(copy) if each.endswith("train.txt") else each for each in command]
    done = study(*other)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    corpus = tmp_path / "out" / "prepared" / "corpus"
    assert f"held_out.txt: is not the text that {corpus} was made from; choose another --output" in done.stderr


@pytest.mark.parametrize("changed", ["text", "eval_sequences", "eval_every"])
def test_models_that_were_evaluated_otherwise_are_refused(
    finished_study: Path, built: Path, tiny_task: Path, tmp_path: Path, study: Run, changed: str
) -> None:
    output, path = tmp_path / "out", finished_study / "study.yaml"
    folder = output / "models" / "explicit_1"
    shutil.copytree(finished_study / "out", output, ignore=shutil.ignore_patterns("results.jsonl"))
    if changed == "text":
        write_json(folder / HELD_OUT, json.loads((folder / HELD_OUT).read_text()) | {"text": "other", "digests": {}})
    else:
        variants = json.loads(path.read_text())["variants"]
        variants["explicit"]["options"][f"trainer.{changed}"] = 10
        path = write_study(tmp_path, tiny_task / "data" / "task.yaml", variants=variants)
    done = study(str(path), *options(built, tiny_task, output))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"error: {folder}: was evaluated on other text or with other settings; choose" in done.stderr


def test_two_studies_in_one_folder_or_with_one_file_of_results_are_refused(
    finished_study: Path, built: Path, tiny_task: Path, tmp_path: Path, study: Run
) -> None:
    results = tmp_path / "results.jsonl"
    command = [str(finished_study / "study.yaml"), *options(built, tiny_task, tmp_path / "out")]
    for locked, name, message in (
        (
            lock_output(tmp_path / "out", "--output"),
            "other.jsonl",
            f"--output: {tmp_path / 'out'} is in use by process",
        ),
        (locked_name(results, "it is in use"), results.name, f"--results: {results} is in use"),
    ):
        with locked:
            done = study(*command, "--results", str(tmp_path / name))
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert message in done.stderr


def test_a_given_model_is_fine_tuned_as_it_is(tmp_path: Path, tiny_task: Path, study: Run) -> None:
    task = tiny_task / "data" / "task.yaml"
    given = {
        "variants": {"given": {"start": True}},
        "reference": "given",
        "lexicons": {},
        "corpora": {},
        "seeds": [1, 2],
    }
    path = write_study(tmp_path, task, vocabulary="start", **given)
    command = [str(path), "--output", str(tmp_path / "out"), "--data", str(tiny_task / "data")]
    done = study(*command)
    assert (done.returncode, done.stderr) == (2, "error: --start: must be given: the study starts from a model\n")
    done = study(*command, "--start", str(tiny_task / "model"))
    assert done.returncode == 0, done.stderr
    records = without_times(tmp_path / "out" / "results.jsonl")
    assert [record["run"] for record in records] == [f"given_1,task,seed={number}" for number in (1, 2)]
    assert len({record["data"]["model"] for record in records}) == 1
