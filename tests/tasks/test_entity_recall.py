"""The command `entity-recall`: its numbers against those of `predict`, its files, and its errors."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tasks.entity_recall import main
from tasks.predict import main as predict
from tasks.registry import TASKS
from tests.support.commands import Done, assert_one_line_error, call
from tests.support.finetuned_runs import made_run
from tests.support.static_programs import fresh_scope
from tests.support.task_files import write

SENTENCES = [
    ("the O", "cat I-PER", "sat I-PER", "on O", "a I-LOC", "mat I-LOC", "home I-LOC"),
    ("it O", "ran O"),
    ("dog I-ORG", "ran O", "now I-LOC", "then B-LOC"),
    ("cats I-PER", ". O"),
] * 6


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Two runs of CoNLL-2003 with different models, and a folder with a dev split. Tests must not change them."""
    folder = tmp_path_factory.mktemp("recall")
    rows = ["\n".join(line.replace(" ", " X X ") for line in sentence) for sentence in SENTENCES]
    data = write(folder / "data" / "eng.testa", "\n\n".join(rows) + "\n").parent
    task = TASKS["conll2003"]
    return made_run(folder / "one", task), made_run(folder / "other", task, num_hidden_layers=1), data


def recall(*arguments: object) -> Done:
    with fresh_scope():
        return call(main, *map(str, arguments))


def chunks(tags: list[str]) -> set[tuple[str, int, int]]:
    """Return the entities of IOB2 tags: type, start, end."""
    found, start = set(), 0
    for i, tag in enumerate([*tags, "O"]):
        if i and tags[i - 1] != "O" and not tag.startswith("I-"):
            found.add((tags[i - 1][2:], start, i))
        if tag.startswith("B-"):
            start = i
    return found


def recount(run: Path, data: Path, folder: Path) -> tuple[Counter[int], Counter[int]]:
    """Return the gold and the found entities by length, from the file that `predict` writes."""
    path = folder / f"{run.name}.txt"
    with fresh_scope():
        done = call(predict, str(run), "--data", str(data), "--split", "dev", "--output", str(path))
    assert done.returncode == 0, done.stderr
    gold, found = Counter[int](), Counter[int]()
    for block in path.read_text("utf-8").strip().split("\n\n"):
        columns = [line.split() for line in block.splitlines()]
        expected, predicted = (chunks([column[i] for column in columns]) for i in (-2, -1))
        gold.update(end - start for _, start, end in expected)
        found.update(end - start for _, start, end in expected & predicted)
    return gold, found


def test_the_numbers_are_those_of_the_files_that_predict_writes(runs: tuple[Path, Path, Path], tmp_path: Path) -> None:
    *models, data = runs
    files = tmp_path / "recall.json", tmp_path / "recall.png"
    done = recall(*models, "--data", data, "--longest", 3, "--json", files[0], "--plot", files[1])
    assert (done.returncode, done.stderr) == (0, "")
    content = json.loads(files[0].read_text("utf-8"))
    assert files[1].read_bytes().startswith(b"\x89PNG")
    assert [run["name"] for run in content["runs"]] == ["one", "other"]
    assert (content["task"], content["split"], content["sentences"]) == ("conll2003", "dev", len(SENTENCES))
    by_length = {row["length"]: row for row in content["tables"][0]["rows"]}
    assert list(by_length) == ["all", "1", "2", "3+"]
    some = 0
    for run in models:
        gold, found = recount(run, data, tmp_path)
        assert gold == {1: 24, 2: 6, 3: 6}
        for name, row in by_length.items():
            lengths = [1, 2, 3] if name == "all" else [int(name[0])]
            count, right = (sum(each[length] for length in lengths) for each in (gold, found))
            assert row["entities"] == count
            assert row["recall"][run.name]["mean"] == pytest.approx(100 * right / count)
            some += right
    assert some
    groups = content["tables"][1]["rows"]
    assert [(row["length"], row["sentences"], row["entities"]) for row in groups] == [("1", 12, 24), ("2.5", 6, 12)]
    lines = done.stdout.splitlines()
    assert "| length | entities | one | other | other - one |" in lines
    cell = by_length["all"]["recall"]["one"]
    assert f"| all | 36 | {cell['mean']:.1f} [{cell['low']:.1f}, {cell['high']:.1f}] |" in done.stdout


def test_runs_with_the_same_name_are_one_model_and_equal_folder_names_are_told_apart(
    runs: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    one, other, data = runs
    path = tmp_path / "recall.json"
    recall(one, other, "--names", "a", "a", "--data", data, "--json", path)
    [row, *_] = json.loads(path.read_text())["tables"][0]["rows"]
    assert list(row["recall"]) == ["a"]
    assert len(row["recall"]["a"]["runs"]) == 2
    twin = made_run(tmp_path / "one", TASKS["conll2003"])
    assert f"| {one} | {twin} | {twin} - {one} |" in recall(one, twin, "--data", data).stdout


def test_mistakes_are_one_line_before_anything_is_predicted(
    runs: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other, data = runs
    monkeypatch.setattr("tasks.entity_recall.predicted_entities", lambda *_: pytest.fail("predicts"))
    rte = made_run(tmp_path / "rte", TASKS["rte"])
    ner = made_run(tmp_path / "ner", TASKS["msra_ner"])
    empty = write(tmp_path / "empty" / "eng.testa", "it X X O\nran X X O\n").parent
    for arguments, message in (
        ((one, rte), f"{rte}: RTE has no entities; give a task of tagging"),
        ((one, ner), f"{ner}: was fine-tuned on MSRA-NER, but {one} on CoNLL-2003"),
        ((one, other, "--names", "a"), "--names: must be one name for each of 2 runs"),
        ((one, "--split", "best"), "--split: must be one of: dev, test"),
        ((one, "--longest", 0), "argument --longest: '0': expected an integer of at least 1"),
        ((one, "--plot", tmp_path / "a.jpg"), f"{tmp_path / 'a.jpg'}: the name of a plot must end in"),
        ((one, "--plot", tmp_path / "a.png", "--json", tmp_path / "a.png"), "--json: must not be the file of --plot"),
        ((one, "--json", one / "task.json"), f"--json: {one / 'task.json'} belongs to the run in"),
        ((one, "--json", data / "eng.testa", "--overwrite"), f"--json: {data / 'eng.testa'} is also an input"),
        ((one, "--data", empty), f"{empty / 'eng.testa'}: has no entities"),
    ):
        assert_one_line_error(recall("--data", data, *arguments), message)
