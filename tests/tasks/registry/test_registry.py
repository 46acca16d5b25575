"""The registry of tasks."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from reader.errors import InputError
from tasks.kinds.multiple_choice import MultipleChoiceExample
from tasks.kinds.sentences import SentenceExample
from tasks.kinds.task import Task
from tasks.registry import TASKS, task_named
from tests.support.commands import ROOT
from tests.support.task_files import load, write, write_json, write_lines

KINDS = {
    "classification": "mnli qnli qqp sst2 cola mrpc rte wnli imdb ag_news xnli lcqmc chnsenticorp "
    "afqmc tnews iflytek cmnli ocnli csl cluewsc2020",
    "regression": "stsb",
    "multiple_choice": "race race_high race_middle c3 chid",
    "span": "squad1 squad2 drcd cmrc2018 dureader_robust dureader",
    "tagging": "conll2003 msra_ner cluener",
}
CHINESE = {"xnli", "lcqmc", "drcd", "cmrc2018", "dureader_robust", "dureader", "msra_ner", "chnsenticorp"}
CLUE = {"afqmc", "tnews", "iflytek", "cmnli", "ocnli", "csl", "cluewsc2020", "c3", "chid", "cluener"}


def test_every_task_of_the_papers_tables_and_of_clue_is_there() -> None:
    assert {kind: {name for name, task in TASKS.items() if task.kind == kind} for kind in KINDS} == {
        kind: set(names.split()) for kind, names in KINDS.items()
    }
    assert {name for name, task in TASKS.items() if task.language == "zh"} == CHINESE | CLUE


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_rows_are_complete(task: Task) -> None:
    assert task_named(task.name) is task
    assert task.evaluation_splits
    assert set(task.splits) == {"train", *task.evaluation_splits, *task.submission_splits}
    assert (task.labels is not None) == (task.kind in ("classification", "tagging"))
    assert (task.score_range is not None) == (task.kind == "regression")


def test_an_unknown_name_is_refused_with_the_most_similar_one() -> None:
    with pytest.raises(InputError, match=r"no task 'sst-2'; did you mean sst2\? \(the tasks: mnli, qnli"):
        task_named("sst-2")


def test_no_code_compares_the_name_of_a_task() -> None:
    for path in (ROOT / "tasks").rglob("*.py"):
        comparison = re.search(r"(?<!for )\btask(_name|\.name)? *(==|!=|in) *[\"'(\[{]", path.read_text("utf-8"))
        assert comparison is None, (path, comparison)


def test_every_module_of_the_registry_is_read() -> None:
    names = {path.stem for path in (ROOT / "tasks" / "registry").glob("*.py")} - {
        "__init__",
        "settings_file",
        "task_file",
    }
    rows = [row for name in names for row in getattr(importlib.import_module(f"tasks.registry.{name}"), name.upper())]
    assert [TASKS[row.name] for row in rows] == rows
    assert len(rows) == len(TASKS)


def texts(task: str, folder: Path, split: str) -> list[tuple[str, str | None, str | None]]:
    """Return both texts and the label of each example of a classification."""
    examples = load(TASKS[task], folder, split).examples
    return [(e.text_a, e.text_b, e.gold) for e in examples if isinstance(e, SentenceExample)]


def test_the_first_row_of_cola_is_an_example_but_the_head_of_its_test_file_is_not(tmp_path: Path) -> None:
    write(tmp_path / "train.tsv", "gj04\t1\t\tFirst one.\ngj04\t0\t*\tSecond one.\n")
    write(tmp_path / "test.tsv", "index\tsentence\n0\tThird one.\n")
    assert texts("cola", tmp_path, "train") == [("First one.", None, "1"), ("Second one.", None, "0")]
    assert texts("cola", tmp_path, "test") == [("Third one.", None, None)]


def test_the_label_of_mnli_is_the_gold_label(tmp_path: Path) -> None:
    names = ["index", "sentence1", "sentence2", "label1", "label2", "label3", "label4", "label5", "gold_label"]
    row = ["0", "a", "b", "neutral", "neutral", "entailment", "entailment", "entailment", "entailment"]
    write(tmp_path / "dev_matched.tsv", "\t".join(names) + "\n" + "\t".join(row) + "\n")
    write(tmp_path / "train.tsv", "sentence1\tsentence2\tlabel1\tgold_label\na\tb\tneutral\tcontradiction\n")
    write(tmp_path / "test_mismatched.tsv", "index\tsentence1\tsentence2\n0\ta\tb\n")
    assert texts("mnli", tmp_path, "dev_matched") == [("a", "b", "entailment")]
    assert texts("mnli", tmp_path, "train") == [("a", "b", "contradiction")]
    assert texts("mnli", tmp_path, "test_mismatched") == [("a", "b", None)]


def test_short_lines_of_qqp_are_omitted(tmp_path: Path) -> None:
    head = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    write(tmp_path / "QQP" / "train.tsv", f"{head}1\t2\t3\ta\n4\t5\t6\ta\tb\t1\n")
    report = load(TASKS["qqp"], tmp_path, "train").report
    assert (report.rows, report.examples, len(report.omitted)) == (2, 1, 1)


def test_mrpc_is_read_with_its_byte_order_mark_and_quotation_marks(tmp_path: Path) -> None:
    head = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
    write(tmp_path / "msr_paraphrase_train.txt", head + '1\t1\t2\t" He said .\t"" Yes "\r\n')
    assert texts("mrpc", tmp_path, "train") == [('" He said .', '"" Yes "', "1")]


def test_scores_of_stsb_are_numbers(tmp_path: Path) -> None:
    write(tmp_path / "dev.tsv", "index\tsentence1\tsentence2\tscore\n0\ta\tb\t4.75\n")
    [example] = load(TASKS["stsb"], tmp_path, "dev").examples
    assert example.gold == 4.75


def test_both_spellings_of_xnli_are_one_label_in_all_of_its_layouts(tmp_path: Path) -> None:
    upstream, official = tmp_path / "upstream", tmp_path / "official"
    write(upstream / "train.tsv", "text_a\ttext_b\tlabel\n甲\t乙\tcontradictory\n")
    write(upstream / "dev.tsv", "text_a\ttext_b\tlabel\n甲\t乙\tcontradiction\n")
    write(official / "XNLI-MT-1.0/multinli/multinli.train.zh.tsv", "premise\thypo\tlabel\n甲\t乙\tcontradictory\n")
    head = "language\tgold_label\tsentence1\tsentence2\n"
    write(official / "XNLI-1.0/xnli.dev.tsv", f"{head}ar\tneutral\tx\ty\nzh\tcontradiction\t甲\t乙\n")
    for folder in (upstream, official):
        for split in ("train", "dev"):
            assert texts("xnli", folder, split) == [("甲", "乙", "contradiction")]


def test_lcqmc_is_read_with_and_without_header(tmp_path: Path) -> None:
    write(tmp_path / "train.txt", "甲\t乙\t1\n")
    write(tmp_path / "dev.tsv", "text_a\ttext_b\tlabel\n甲\t乙\t1\n")
    assert texts("lcqmc", tmp_path, "train") == texts("lcqmc", tmp_path, "dev") == [("甲", "乙", "1")]


def test_the_keywords_of_csl_are_its_first_text(tmp_path: Path) -> None:
    write_lines(tmp_path / "train.json", {"id": 0, "abst": "摘要", "keyword": ["一", "二"], "label": "1"})
    assert texts("csl", tmp_path, "train") == [("一 二", "摘要", "1")]


def test_rows_of_ocnli_without_gold_label_are_omitted(tmp_path: Path) -> None:
    rows = [{"sentence1": "a", "sentence2": "b", "label": label, "label0": None} for label in ("-", "neutral")]
    write_lines(tmp_path / "train.3k.json", *rows)
    assert texts("ocnli", tmp_path, "train") == [("a", "b", "neutral")]


def test_tags_of_msra_are_joined_by_a_control_character(tmp_path: Path) -> None:
    write(tmp_path / "train.tsv", "text_a\tlabel\n上\x02海\x021\tB-LOC\x02I-LOC\x02O\n")
    [example] = load(TASKS["msra_ner"], tmp_path, "train").examples
    assert (example.text, example.tags) == ("上海1", ("B-LOC", "I-LOC", "O"))


def test_labels_of_ag_news_are_1_to_4_and_titles_may_be_empty(tmp_path: Path) -> None:
    write(tmp_path / "test.csv", '"4","","A #39;quoted #39; text"\n"1","T","D"\n')
    assert texts("ag_news", tmp_path, "test") == [("A'quoted' text", None, "4"), ("T D", None, "1")]


def test_race_reads_the_schools_that_it_is_for(tmp_path: Path) -> None:
    article = {"article": "x", "questions": ["?"], "options": [["a", "b", "c", "d"]], "answers": ["D"]}
    for school in ("high", "middle"):
        write_json(tmp_path / "RACE" / "dev" / school / "1.txt", article)
    for task, ids in (
        ("race", ["high/1-0", "middle/1-0"]),
        ("race_high", ["high/1-0"]),
        ("race_middle", ["middle/1-0"]),
    ):
        examples = load(TASKS[task], tmp_path, "dev").examples
        assert [e.id for e in examples] == ids
        assert all(isinstance(e, MultipleChoiceExample) and e.answer == 3 for e in examples)
