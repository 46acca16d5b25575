"""The registry of tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reader.system.installation import CONF
from reader.system.untrusted_text import read_yaml
from tasks.files.official import available_splits
from tasks.kinds.task import Task
from tasks.registry import TASKS, find_task
from tests.support.task_files import load, write, write_json, write_lines

CHINESE = ("chinese.yaml", "clue.yaml")


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_rows_are_complete(task: Task) -> None:
    assert find_task(task.name) is task
    assert (task.language == "zh") == any(task.name in read_yaml(CONF / "registry" / f) for f in CHINESE)
    assert task.evaluation_splits
    assert set(task.splits) == {"train", *task.evaluation_splits, *task.submission_splits}
    assert (task.labels is not None) == (task.kind in ("classification", "tagging"))
    assert (task.score_range is not None) == (task.kind == "regression")


HEAD_OF_MNLI = "index\tsentence1\tsentence2\tlabel1\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label\n"
ROW_OF_MNLI = "0\ta\tb\tneutral\tneutral\tentailment\tentailment\tentailment\tentailment\n"
HEAD_OF_XNLI = "language\tgold_label\tsentence1\tsentence2\n"
# A byte order mark, CR LF, and quotation marks that have no meaning.
MRPC = '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n1\t1\t2\t" He said .\t"" Yes "\r\n'
CSL = {"id": 0, "abst": "摘要", "keyword": ["一", "二"], "label": "1"}
OCNLI = [{"sentence1": "a", "sentence2": "b", "label": label, "label0": None} for label in ("-", "neutral")]


MT_OF_XNLI = "XNLI-MT-1.0/multinli/multinli.train.zh.tsv"
CONTRADICTION = [("甲", "乙", "contradiction")]
NEWS = '"4","","A #39;quoted #39; text"\n"1","T","D"\n'


@pytest.mark.parametrize(
    ("task", "file", "content", "expected"),
    [
        # Train and dev have no header.
        ("cola", "train.tsv", "gj04\t1\t\tOne.\ngj04\t0\t*\tTwo.\n", [("One.", None, "1"), ("Two.", None, "0")]),
        ("mnli", "dev_matched.tsv", HEAD_OF_MNLI + ROW_OF_MNLI, [("a", "b", "entailment")]),
        ("mnli", "test_mismatched.tsv", "index\tsentence1\tsentence2\n0\ta\tb\n", [("a", "b", None)]),
        # A line that is too short is omitted.
        ("qqp", "QQP/train.tsv", "id\tquestion1\tquestion2\tis_duplicate\n1\ta\n4\ta\tb\t1\n", [("a", "b", "1")]),
        ("mrpc", "msr_paraphrase_train.txt", MRPC, [('" He said .', '"" Yes "', "1")]),
        # Both spellings of a label, and all layouts.
        ("xnli", "train.tsv", "text_a\ttext_b\tlabel\n甲\t乙\tcontradictory\n", CONTRADICTION),
        ("xnli", MT_OF_XNLI, "premise\thypo\tlabel\n甲\t乙\tcontradictory\n", CONTRADICTION),
        (
            "xnli",
            "XNLI-1.0/xnli.dev.tsv",
            f"{HEAD_OF_XNLI}ar\tneutral\tx\ty\nzh\tcontradiction\t甲\t乙\n",
            CONTRADICTION,
        ),
        ("lcqmc", "train.txt", "甲\t乙\t1\n", [("甲", "乙", "1")]),
        ("lcqmc", "dev.tsv", "text_a\ttext_b\tlabel\n甲\t乙\t1\n", [("甲", "乙", "1")]),
        ("csl", "train.json", json.dumps(CSL), [("一 二", "摘要", "1")]),
        ("ocnli", "train.3k.json", "\n".join(map(json.dumps, OCNLI)), [("a", "b", "neutral")]),
        ("ag_news", "test.csv", NEWS, [("A'quoted' text", None, "4"), ("T D", None, "1")]),
    ],
)
def test_official_files_of_texts_are_read(
    tmp_path: Path, task: str, file: str, content: str, expected: list[tuple[Any, ...]]
) -> None:
    write(tmp_path / file, content)
    [split] = available_splits(TASKS[task], tmp_path)
    assert [(e.text_a, e.text_b, e.gold) for e in load(TASKS[task], tmp_path, split).examples] == expected


def test_race_reads_the_schools_that_it_is_for(tmp_path: Path) -> None:
    article = {"article": "x", "questions": ["?"], "options": [["a", "b", "c", "d"]], "answers": ["D"]}
    for school in ("high", "middle"):
        write_json(tmp_path / "RACE" / "dev" / school / "1.txt", article)
    for task, schools in (("race", ["high", "middle"]), ("race_high", ["high"]), ("race_middle", ["middle"])):
        examples = load(TASKS[task], tmp_path, "dev").examples
        assert [(e.id, e.answer) for e in examples] == [(f"{school}/1-0", 3) for school in schools]


@pytest.mark.parametrize("folder", ["", "preprocessed", "dureader/preprocessed"])
def test_dureaders_own_files_are_read_together_from_all_its_folders(tmp_path: Path, folder: str) -> None:
    document = {"segmented_paragraphs": [["甲", "乙"]], "most_related_para": 0}
    row = {"question": "?", "documents": [document], "answer_docs": [0], "answer_spans": [[1, 1]]}
    for split in ("train", "dev"):
        for origin in ("search", "zhidao"):
            path = tmp_path / folder / f"{split}set" / f"{origin}.{split}.json"
            write_lines(path, {"question_id": origin, **row})
        examples = load(TASKS["dureader"], tmp_path, split).examples
        assert [(each.id, each.answers[0].text) for each in examples] == [("search", "乙"), ("zhidao", "乙")]
