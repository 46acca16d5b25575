"""The command that predicts: submissions of official files, JSON lines of one's own texts, errors before any work."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tqdm import tqdm

from tasks.api import FineTuned
from tasks.predict import main
from tasks.registry import TASKS
from tasks.score import main as score
from tests.support.commands import ERNIE_GRAM, Done, assert_one_line_error, call, python
from tests.support.finetuned_runs import TEXTS, made_run, set_null_threshold
from tests.support.static_programs import call_in_scope
from tests.support.task_files import squad, write, write_json, write_lines


def predict(*arguments: Any) -> Done:
    return call_in_scope(main, *arguments)


def records(*arguments: Any, output: Path) -> list[dict[str, Any]]:
    """Run the command, which must succeed, and return the JSON lines that it writes."""
    predict(*arguments, "--output", output, "--overwrite").ok()
    return [json.loads(line) for line in output.read_text("utf-8").splitlines()]


def pairs_file(path: Path, labels: bool) -> Path:
    names = ["sentence1", "sentence2", *(["label"] if labels else [])]
    gold = ("entailment", "not_entailment")
    rows = [[a, b, *([gold[i % 2]] if labels else [])] for i, a in enumerate(TEXTS) for b in TEXTS]
    return write(path, "".join("\t".join(row) + "\n" for row in [names, *rows]))


@pytest.fixture(scope="module")
def rte(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of RTE. Tests must not change it."""
    return made_run(tmp_path_factory.mktemp("rte") / "run", TASKS["rte"])


def test_a_submission_has_the_figure_of_the_evaluation(rte: Path, tmp_path: Path, bars: dict[str, tqdm[Any]]) -> None:
    gold = pairs_file(tmp_path / "dev.tsv", labels=True)
    done = predict(rte, "--data", tmp_path, "--split", "dev", "--output", tmp_path, "--batch_size", 4)
    assert (done.returncode, done.stderr) == (0, "")
    counted = [(name, bar.n, bar.total) for name, bar in bars.items()]
    texts = ("splitting texts into tokens", len(TEXTS), len(TEXTS))
    assert counted == [(f"reading {gold}", 25, None), texts, ("predicting", 25, 25)]
    account, written, scores = done.stdout.splitlines()
    assert account == f"rte dev: rows 25, examples 25 ({gold})"
    assert written == f"{tmp_path / 'RTE.tsv'}: 25 predictions of {rte / 'best'}"
    assert 0 < json.loads(scores)["accuracy"] < 1
    done = call(score, "rte", str(tmp_path / "RTE.tsv"), "--data", str(tmp_path))
    assert json.loads(done.stdout) == json.loads(scores)


def test_without_output_the_answers_alone_are_on_standard_output(rte: Path, tmp_path: Path) -> None:
    gold = pairs_file(tmp_path / "dev.tsv", labels=True)
    own = write(tmp_path / "own", "".join(f"{a}\t{a}\n" for a in TEXTS))
    for source in (("--data", tmp_path, "--split", "dev"), ("--input", own, "--layout", "lines")):
        written = tmp_path / source[0][2:]
        to_file, printed = predict(rte, *source, "--output", written), predict(rte, *source)
        assert printed.stdout == written.read_text()
        account, *scores = to_file.stdout.splitlines()
        assert printed.stderr.splitlines() == [account, *scores[1:]]
        assert account.endswith(f"({gold if source[0] == '--data' else own})")
    for more, key in ((["--processes", "2"], "--output"), (["--overwrite"], "--overwrite")):
        assert_one_line_error(predict(rte, "--input", own, *more), f"{key}: ")


def test_two_processes_write_the_same_file(rte: Path, tmp_path: Path) -> None:
    pairs_file(tmp_path / "test.tsv", labels=False)
    common = ["--data", str(tmp_path), "--json", "--batch_size", "4", "--output"]
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    assert predict(rte, *common, one).returncode == 0
    two_processes = (*ERNIE_GRAM, "predict", str(rte), *common, str(two), "--processes", "2")
    python(*two_processes, LOG_DIR=str(tmp_path / "log")).ok()
    assert one.read_bytes() == two.read_bytes()


def test_own_pairs_are_answered_with_probabilities_from_every_layout(rte: Path, tmp_path: Path) -> None:
    rows = list(zip(TEXTS, reversed(TEXTS), strict=True))
    lines = write(tmp_path / "lines", "".join(f"{a}\t{b}\n" for a, b in rows))
    table = write(tmp_path / "task", "sentence2\tid\tsentence1\n" + "".join(f"{b}\t{a[4:]}{b}\t{a}\n" for a, b in rows))
    answers, named = (
        records(rte, "--input", path, "--layout", path.name, output=tmp_path / "out") for path in (lines, table)
    )
    assert [record.pop("id") for record in answers] == [0, 1, 2, 3, 4]
    assert [record.pop("id") for record in named] == [f"{a[4:]}{b}" for a, b in rows]
    assert answers == named
    for record in answers:
        assert sum(record["probabilities"].values()) == pytest.approx(1)
        assert record["label"] == max(record["probabilities"], key=record["probabilities"].__getitem__)


def test_bad_rows_are_refused_or_skipped_and_listed(rte: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "test.tsv", "sentence1\tsentence2\nit\tran\nx\n")
    command = (rte, "--data", tmp_path, "--output", tmp_path / "out")
    assert_one_line_error(predict(*command), f"{path}:3: too few fields")
    assert not (tmp_path / "out").exists()
    done = predict(*command, "--on_bad_row", "skip")
    assert f"    {path}:3: too few fields" in done.stdout
    assert "warning: no prediction for 1 row" in done.stderr
    assert len((tmp_path / "out").read_text().splitlines()) == 2


def test_answers_have_their_characters_and_unanswerable_questions_a_threshold(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", TASKS["squad2"])
    context = "The cat sat on a mat; the dog ran home, then it sat now. The cats ran on the mat."
    lines = write_lines(tmp_path / "own.jsonl", *({"context": context, "question": text} for text in TEXTS))
    own = ("--input", lines, "--layout", "json")
    set_null_threshold(run, 1e9)
    answers = records(run, *own, output=tmp_path / "out.jsonl")
    for record in answers:
        assert context[record["start"] : record["end"]] == record["answer"] != ""
        assert 0 < record["probability"] <= 1
    middle = sorted(record["na_score"] for record in answers)[2]
    set_null_threshold(run, middle)
    chosen = records(run, *own, output=tmp_path / "out.jsonl")
    assert [record["answer"] == "" for record in chosen] == [record["na_score"] > middle for record in answers]
    for key in ("start", "end", "score", "probability"):
        assert [record[key] is None for record in chosen] == [record["answer"] == "" for record in chosen]
    assert records(run / "best", *own, output=tmp_path / "out.jsonl") == chosen
    write_json(tmp_path / "dev-v2.0.json", squad(context, {f"q{i}": [] for i in range(5)}, "it ran"))
    done = predict(run, "--data", tmp_path, "--split", "dev", "--output", tmp_path / "named.json").ok()
    assert sorted(path.name for path in tmp_path.glob("na*.json")) == ["na_prob.json", "named.json"]
    scored = call(score, "squad2", str(tmp_path / "named.json"), "--data", str(tmp_path))
    assert json.loads(done.stdout.splitlines()[-1])["f1"] == json.loads(scored.stdout)["f1"]


def test_entities_have_the_characters_of_the_text(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", TASKS["conll2003"])
    texts = [f"{text}, it   (ran)." for text in TEXTS]
    lines = write_lines(tmp_path / "a.jsonl", *({"text": text} for text in texts))
    answers = records(run, "--input", lines, "--layout", "json", output=tmp_path / "a")
    assert answers[0]["tokens"] == ["the", "cat", "sat", ",", "it", "(", "ran", ")", "."]
    entities = [(text, entity) for text, record in zip(texts, answers, strict=True) for entity in record["entities"]]
    assert len(entities) > 3
    assert all(text[entity["start"] : entity["end"]] == entity["text"] for text, entity in entities)
    tokens = write(tmp_path / "c.txt", "\n".join("".join(f"{t}\n" for t in record["tokens"]) for record in answers))
    joined = records(run, "--input", tokens, output=tmp_path / "c")
    assert [record["tags"] for record in joined] == [record["tags"] for record in answers]
    assert all(" ".join(r["tokens"])[e["start"] : e["end"]] == e["text"] for r in joined for e in r["entities"])


def test_errors_are_one_line_and_nothing_is_written(rte: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = write(tmp_path / "own.tsv", "sentence1\tsentence2\nit\tran\n")
    plain, output = write(tmp_path / "plain.tsv", "it\tran\n"), tmp_path / "out"
    (tmp_path / "empty").mkdir()
    for arguments, message in (
        ([tmp_path, "--input", texts], f"{tmp_path}: not a fine-tuned model"),
        ([rte], "--data or --input: "),
        ([rte, "--input", texts, "--split", "dev"], "--split: "),
        ([rte, "--input", tmp_path / "none.tsv"], f"{tmp_path / 'none.tsv'}: no such file"),
        ([rte, "--input", plain], f"{plain}:1: no column 'sentence1'"),
        ([rte, "--input", plain, "--layout", "json"], f"{plain}:1: not JSON"),
        ([rte, "--data", tmp_path, "--layout", "lines"], "--layout: "),
        ([rte, "--input", "/dev/null", "--processes", "2"], "--processes: "),
        ([rte, "--data", tmp_path, "--split", "tset"], "--split: RTE has no split 'tset'"),
        ([rte, "--data", tmp_path / "empty"], f"{tmp_path / 'empty'}: no files of the split 'test'"),
        ([rte, "--input", texts, "--batch_size", "0"], "argument --batch_size: "),
    ):
        assert_one_line_error(predict(*arguments, "--output", output), message)
    monkeypatch.setenv("LOG_DIR", str(texts))
    done = predict(rte, "--input", texts, "--output", output, "--processes", "2")
    assert_one_line_error(done, f"LOG_DIR: {texts}")
    assert not output.exists()


def test_files_are_replaced_on_request_inputs_never(rte: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.predict.start_world", lambda *_: pytest.fail("predicts"))
    # In a folder the file gets its official name.
    lines = write(tmp_path / "rte_input.jsonl", "sentence1\tsentence2\nit\tran\n")
    weights, other = rte / "best" / "model.safetensors", write(tmp_path / "other", "mine")
    for output, message in (
        (lines, f"--output: {lines} is also an input"),
        (tmp_path, f"--output: {lines} is also an input"),
        (weights, f"--output: {weights} belongs to the checkpoint in {rte / 'best'}"),
        (rte / "task.json", f"--output: {rte / 'task.json'} belongs to the run in {rte}"),
    ):
        assert_one_line_error(predict(rte, "--input", lines, "--output", output, "--overwrite"), message)
    assert_one_line_error(predict(rte, "--input", lines, "--output", other), f"{other}: already exists")
    run = made_run(tmp_path / "run", TASKS["squad2"])
    write_json(tmp_path / "dev-v2.0.json", squad("the cat", {"q": []}))
    other = write(tmp_path / "na_prob.json", "mine")
    done = predict(run, "--data", tmp_path, "--split", "dev", "--output", tmp_path / "new.json")
    assert_one_line_error(done, f"{other}: already exists")


def test_a_trained_model_predicts_what_its_evaluation_found(finetuned: Path, tiny_task: Path, tmp_path: Path) -> None:
    from tasks.convert import main as export

    result = json.loads((finetuned / "result.json").read_text())
    output = tmp_path / "out.tsv"
    common = ["--data", tiny_task / "data", "--split", "dev", "--output", output, "--overwrite"]
    done = predict(finetuned, *common, "--batch_size", 4).ok()
    assert json.loads(done.stdout.splitlines()[-1]) == result["scores"]["dev"]
    assert output.read_bytes() == (finetuned / "predictions_dev.tsv").read_bytes()
    newest = max(finetuned.glob("step_*"), key=lambda path: int(path.name[5:]))
    assert f"predictions of {newest}" in predict(newest, *common).stdout
    without_best = Path(shutil.copytree(finetuned, tmp_path / "without_best"))
    shutil.rmtree(without_best / "best")
    weights = without_best / "step_9999" / "model.safetensors"
    shutil.copytree(newest, weights.parent)
    weights.write_bytes(weights.read_bytes()[:50])
    done = predict(without_best, *common)
    assert re.search(rf"note: .*{weights}: truncated or altered .*; step_\d+ is used instead", done.stderr)
    assert f"predictions of {without_best / newest.name}" in done.stdout
    with pytest.warns(UserWarning, match="is used instead"):
        FineTuned.load(without_best)
    done = call_in_scope(export, without_best, tmp_path / "of_an_older_one", "--to", "inference")
    assert f"note     {without_best / newest.name}: {weights}: truncated or altered " in done.stdout
