"""What a study needs is checked before it builds or trains anything."""

from __future__ import annotations

import json
from pathlib import Path

from tasks.study import main
from tests.support.commands import call
from tests.support.task_files import write
from tests.support.toy_study import write_study


def test_what_is_missing_is_named_before_anything_is_built(tmp_path: Path, tiny_task: Path) -> None:
    path = write_study(tmp_path, tiny_task / "data" / "task.yaml")
    data = ["--data", str(tiny_task / "data")]
    train, held_out = (write(tmp_path / f"{name}.txt", "a text\n") for name in ("train", "held_out"))
    texts = ["--input", str(train), "--held_out", str(held_out)]
    for more, message in (
        (texts, "--data: must be given: the folder with the files of the tasks"),
        ([*texts, "--data", str(tmp_path)], "no files of the split 'train'"),
        (data, "--input: must be given, to build "),
        ([*data, "--input", "none.txt"], "--held_out: must be given, to build "),
        ([*data, *texts[:2], "--held_out", "none.txt"], "none.txt: no such file, folder or pattern"),
        ([*data, *texts, "--input", "none.txt", "--check"], "none.txt: no such file, folder or pattern"),
        (
            [*data, *texts, "--input", str(tmp_path / "*.txt"), "--check"],
            f"--held_out: {held_out} is also a text of --input; give another text",
        ),
    ):
        done = call(main, str(path), "--output", str(tmp_path / "out"), *more)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert message in done.stderr
    assert not (tmp_path / "out").exists()
    done = call(main, str(path), "--output", str(tmp_path / "out"), *data, *texts, "--check")
    prepared = tmp_path / "out" / "prepared"
    names = ("vocab.txt", "lexicon.tsv", "corpus", "held_out")
    assert done.stdout.splitlines()[:-1] == [f"would build {prepared / name}" for name in names]
    assert not prepared.exists()
    mine = write(tmp_path / "mine.jsonl", '{"text": "of the user"}\n')
    corpus = {"run": "corpus corpus", "kind": "corpus", "corpus": "corpus", "digest": "", "result": {}}
    recorded = write(tmp_path / "recorded.jsonl", json.dumps(corpus | {"data": {"text": "0"}}) + "\n")
    for more, message in (
        (["--results", str(mine)], f"{mine}, line 1: not a result of a study"),
        (
            ["--results", str(recorded), "--check"],
            f"{recorded}: has results of another text than --input {train}; give",
        ),
        (["--start", "model"], "--start: this study does not start from a given model"),
    ):
        done = call(main, str(path), "--output", str(tmp_path / "out"), *data, *texts, *more)
        assert message in done.stderr
    assert mine.read_text() == '{"text": "of the user"}\n'
    assert not prepared.exists()
    done = call(main, "lader", "--output", str(tmp_path / "out"))
    assert "no such study; the studies are " in done.stderr
