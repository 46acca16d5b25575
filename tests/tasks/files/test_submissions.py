"""Each form writes what its benchmark asks for, and `ernie-gram score` gives the scores of the evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tasks.files.official import load_split, with_labels
from tasks.files.submissions import NA_PROB, form_of, no_answer_probabilities, read_predictions
from tasks.kinds.base import Predictions
from tasks.kinds.catalog import kind_of
from tasks.kinds.settings import KindSettings
from tasks.kinds.task import Task
from tasks.metrics.labels_and_scores import Scores
from tasks.registry import TASKS
from tasks.registry.task_file import read_task_file
from tasks.score import main
from tests.support.commands import assert_one_line_error, call
from tests.support.own_tasks import KNOWN, MOODS, MOODS_FILE
from tests.support.task_files import load, squad, write, write_json, write_lines


def submit(
    task: Task, split: str, folder: Path, answers: list[Any], details: Any = None, **options: Any
) -> dict[str, bytes]:
    """Return the files of a submission for the split in a folder."""
    examples = load_split(task, folder, split).examples
    details = details or [{} for _ in answers]
    predictions, form = Predictions(task, examples, answers, details, options=options), form_of(task)
    files = {form.file_name(task, split): form.content(predictions).encode()}
    return files | ({NA_PROB: no_answer_probabilities(predictions).encode()} if task.unanswerable else {})


def scores_of(task: Task, split: str, folder: Path, for_metric: Any, **options: Any) -> Scores:
    """Return the scores of the evaluation."""
    examples = load_split(task, folder, split).examples
    return kind_of(task, KindSettings()).evaluate(Predictions(task, examples, (), (), for_metric, options))


def score(task: str, split: str, path: Path, content: bytes, *options: Any, warnings: int = 0) -> Scores:
    """Write predictions beside the files of a task; return what the command prints, with this number of warnings."""
    write(path, content)
    done = call(main, task, str(path), "--data", str(path.parent), "--split", split, *map(str, options))
    assert (done.returncode, done.stderr.count("warning: "), done.stderr.count("\n")) == (0, warnings, warnings)
    scores: Scores = json.loads(done.stdout)
    return scores


@pytest.mark.parametrize(
    ("task", "split", "name"),
    [
        ("stsb", "test", "STS-B.tsv"),
        ("mnli", "test_matched", "MNLI-m.tsv"),
        ("mnli", "dev_mismatched", "MNLI-mm.tsv"),
        ("mnli", "diagnostic", "AX.tsv"),
        ("dureader_robust", "test", "predictions.json"),
        ("tnews", "test", "tnews11_predict.json"),
        ("tnews", "test1.0", "tnews10_predict.json"),
        ("cluewsc2020", "test", "cluewsc11_predict.json"),
        ("cmrc2018", "test", "cmrc2018_predict.json"),
        ("conll2003", "test", "conll2003_test.txt"),
        ("imdb", "test", "imdb_test.tsv"),
    ],
)
def test_files_have_the_names_that_benchmarks_ask_for(task: str, split: str, name: str) -> None:
    assert form_of(KNOWN[task]).file_name(KNOWN[task], split) == name


ARTICLE = {"article": "a", "questions": ["q"], "options": [["x", "y", "z", "w"]], "answers": ["C"]}
C3 = [["line"], [{"id": number, "question": "q", "choice": ["x", "y", "z"]} for number in (7, 8)], "d-1"]
SCORES_OF_STSB = "sentence1\tsentence2\tscore\na\tb\t1\nc\td\t2.5\ne\tf\t5\n"
PREDICTED = [0.1234567890123, -0.2, 5.3]
NAME_AND_CITY = {"name": {"李明": [[0, 1]]}, "address": {"北京": [[3, 4]]}}
# Task, split, its files, answers, and what is written.
WRITTEN: list[tuple[str, str, dict[str, str], list[Any], str]] = [
    # Every row once, in order.
    ("cola", "test", {"test.tsv": "index\tsentence\n0\tC.\n1\tA.\n2\t\n"}, ["1", "0", "1"], "0\t1\n1\t0\n2\t1\n"),
    # All digits of scores, which are limited to the range of the task in a test set only.
    ("stsb", "dev", {"dev.tsv": SCORES_OF_STSB}, PREDICTED, "0\t0.1234567890123\n1\t-0.2\n2\t5.3\n"),
    ("stsb", "test", {"test.tsv": SCORES_OF_STSB}, PREDICTED, "0\t0.1234567890123\n1\t0.0\n2\t5.0\n"),
    ("race_high", "dev", {"dev/high/1.txt": json.dumps(ARTICLE)}, [2], '{"high/1-0": 2}\n'),
    # IDs of questions, and indices.
    ("c3", "test", {"test1.1.json": json.dumps([C3])}, [2, 0], '{"id": 7, "label": 2}\n{"id": 8, "label": 0}\n'),
    (
        "conll2003",
        "dev",
        {"eng.testa": "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\n. . O O\n\nBonn NNP I-NP I-LOC\n\n"},
        [["B-ORG", "O"], ["B-PER"]],
        "EU B-ORG B-ORG\n. O O\n\nBonn B-LOC B-PER\n\n",
    ),
    # White space is a token of a column.
    (
        "msra_ner",
        "test",
        {"test.tsv": "text_a\tlabel\n北\x02 \x02京\tB-LOC\x02O\x02B-LOC\n"},
        [["B-LOC", "O", "O"]],
        "北 B-LOC B-LOC\n_ O O\n京 B-LOC O\n\n",
    ),
    # The last characters are inclusive.
    (
        "cluener",
        "dev",
        {"dev.json": '{"text": "李明在北京", "label": {"name": {"李明": [[0, 1]]}}}'},
        [NAME_AND_CITY],
        json.dumps({"id": 0, "label": NAME_AND_CITY}, ensure_ascii=False) + "\n",
    ),
]


@pytest.mark.parametrize(("task", "split", "files", "answers", "content"), WRITTEN)
def test_a_submission_has_the_form_of_its_benchmark_and_the_scores_of_the_evaluation(
    tmp_path: Path, task: str, split: str, files: dict[str, str], answers: list[Any], content: str
) -> None:
    for name, text in files.items():
        write(tmp_path / name, text)
    of = TASKS[task]
    details = [{"tags": each} for each in answers]  # only files of tags read them
    [written] = submit(of, split, tmp_path, answers, details).values()
    head = "index\tprediction\n" if task in ("cola", "stsb") else ""
    assert written.decode() == head + content
    if of.splits[split].labelled:
        for_metric = {"high/1-0": 2} if task == "race_high" else answers
        assert score(task, split, tmp_path / "p", written) == scores_of(of, split, tmp_path, for_metric)


def test_another_metric_scores_a_file_and_other_programs_keep_the_marks_of_documents(tmp_path: Path) -> None:
    write(tmp_path / "dev.tsv", "question\tsentence\tlabel\na\tb\tentailment\nc\td\tnot_entailment\n")
    [(name, content)] = submit(TASKS["qnli"], "dev", tmp_path, ["not_entailment"] * 2).items()
    assert score("qnli", "dev", tmp_path / name, content) == {"accuracy": 0.5}
    assert score("qnli", "dev", tmp_path / name, content, "--metric", "macro_f1")["macro_f1"] == pytest.approx(1 / 3)
    write(tmp_path / "eng.testa", "EU NNP I-NP I-ORG\n")
    assert score("conll2003", "dev", tmp_path / "p", b"-DOCSTART- -X- O O\n\nEU B-ORG\n")["f1"] == 100


def test_lines_of_clue_have_the_ids_of_the_file_and_labels_as_texts(tmp_path: Path) -> None:
    rows = [{"id": number, "sentence1": "甲", "sentence2": "乙"} for number in (3, 0)]
    write_lines(tmp_path / "test.json", *rows)
    content = submit(TASKS["afqmc"], "test", tmp_path, ["1", "0"])["afqmc_predict.json"]
    assert content == b'{"id": 3, "label": "1"}\n{"id": 0, "label": "0"}\n'
    labels = ["entailment", "-", "neutral", "neutral"]
    write_lines(tmp_path / "dev.json", *({"sentence1": "甲", "sentence2": "乙", "label": label} for label in labels))
    answers = ["entailment", "contradiction", "neutral"]
    content = submit(TASKS["ocnli"], "dev", tmp_path, answers)["ocnli_50k_predict.json"]
    assert [json.loads(line)["id"] for line in content.decode().splitlines()] == [0, 2, 3]
    expected = scores_of(TASKS["ocnli"], "dev", tmp_path, answers)
    # A row without gold label may have a prediction.
    for more in (b"", b'{"id": 1, "label": "neutral"}\n'):
        scores = score("ocnli", "dev", tmp_path / "p.json", content + more, warnings=1)
        assert scores == expected == {"accuracy": pytest.approx(2 / 3)}
    write_lines(tmp_path / "dev.json", {"content": ["#idiom1#和#idiom2#"], "candidates": ["甲", "乙", "丙"]})
    write_json(tmp_path / "dev_answer.json", {"#idiom1#": 2, "#idiom2#": 0})
    content = submit(TASKS["chid"], "dev", tmp_path, [2, 1])["chid11_predict.json"]
    assert json.loads(content) == {"#idiom1#": 2, "#idiom2#": 1}
    assert score("chid", "dev", tmp_path / "p.json", content)["accuracy"] == 0.5
    missing = score("chid", "dev", tmp_path / "p.json", b'{"#idiom1#": 2, "#idiom7#": 0}')
    assert missing == {"accuracy": 0.5, "total": 2, "skipped": 1}


def test_labels_of_a_text_are_a_list_in_its_line(tmp_path: Path) -> None:
    rows = [{"text": "a", "moods": ["sad", "glad"]}, {"text": "b", "moods": []}, {"text": "c", "moods": ["calm"]}]
    write_lines(tmp_path / "dev.jsonl", *rows)
    answers = [("glad", "sad"), (), ("sad", "calm")]
    [(name, content)] = submit(MOODS, "dev", tmp_path, answers).items()
    lines = b'{"id": 0, "labels": ["glad", "sad"]}\n{"id": 1, "labels": []}\n{"id": 2, "labels": ["sad", "calm"]}\n'
    assert (name, content) == ("moods_dev.jsonl", lines)
    expected = scores_of(MOODS, "dev", tmp_path, answers)
    # Another program may write other keys, and the labels in another order.
    for written in (content, content.replace(b'["glad", "sad"]', b'["sad", "glad"], "probabilities": {}')):
        assert score(str(MOODS_FILE), "dev", tmp_path / "p.jsonl", written) == expected
    assert expected["micro_f1"] == pytest.approx(6 / 7)
    bad = str(write(tmp_path / "p.jsonl", content.replace(b'["sad", "calm"]', b'"sad calm"')))
    done = call(main, str(MOODS_FILE), bad, "--data", str(tmp_path))
    assert_one_line_error(done, f"{bad}:3: labels is not a list but 'sad calm'")


ANSWERABLE = "a red car and a blue 汽车"


def test_unanswerable_questions_of_squad_have_no_text_and_a_high_probability(tmp_path: Path) -> None:
    write_json(tmp_path / "dev-v2.0.json", squad(ANSWERABLE, {"a": ["red car"], "b": [], "c": [], "d": ["汽车"]}))
    texts, na_scores, threshold = ["red car", "blue", "blue", "汽车"], [-900.0, 7.5, 2.0, 2.5], 2.25
    answers = ["" if na_score > threshold else text for text, na_score in zip(texts, na_scores, strict=True)]
    options: dict[str, Any] = {"na_prob": dict(zip("abcd", na_scores, strict=True)), "threshold": threshold}
    files = submit(TASKS["squad2"], "dev", tmp_path, answers, **options)
    assert json.loads(files["predictions.json"]) == {"a": "red car", "b": "", "c": "blue", "d": ""}
    probabilities = json.loads(files["na_prob.json"])
    assert [key for key, value in probabilities.items() if value > 0.5] == ["b", "d"]
    expected = scores_of(TASKS["squad2"], "dev", tmp_path, dict(zip("abcd", texts, strict=True)), **options)
    written = json.loads(files["predictions.json"])
    found = [score("squad2", "dev", tmp_path / "p.json", files["predictions.json"])]
    # The official script gives the same with na_prob.json, and with a threshold of 0.5.
    found += [
        scores_of(TASKS["squad2"], "dev", tmp_path, written, na_prob=probabilities, threshold=each)
        for each in (1.0, 0.5)
    ]
    for scores in found:
        assert all(scores[key] == expected[key] for key in ("exact", "f1", "HasAns_f1", "NoAns_f1"))


SCHEMES = {
    "IOB1": "I-A I-A O I-A B-A I-B O",
    "IOB2": "B-A I-A O B-A B-A B-B O",
    "IOE": "I-A E-A O E-A E-A E-B O",
    "BIOES": "B-A E-A O S-A S-A S-B O",
    "BMES": "B-A E-A O S-A S-A S-B O",
    "BILOU": "B-A L-A O U-A U-A U-B O",
    "letters after types": "A-B A-I O A-B A-B B-B O",
    "BMEWO": "B-A E-A O W-A W-A W-B O",
    "underscores": "B_A I_A O B_A B_A B_B O",
    "numbers": "1 2 0 1 1 3 0",
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_equal_entities_are_right_in_all_schemes(tmp_path: Path, scheme: str) -> None:
    task = "kind: tagging\nlanguage: en\nlayout: conll\nfiles: {train: t, dev: t}\nmetric: conlleval\n"
    names = "label_aliases: [O, B-A, I-A, B-B]\n" if scheme == "numbers" else ""
    own = read_task_file(write(tmp_path / "own.yaml", task + names))
    for gold, predicted in ((scheme, "IOB2"), ("IOB2", scheme), (scheme, scheme)):
        for name, tags in {"t": SCHEMES[gold], "p": SCHEMES[predicted]}.items():
            write(tmp_path / name, "".join(f"x {tag}\n" for tag in tags.split()))
        kind = kind_of(with_labels(own, tmp_path), KindSettings())
        examples = load(kind.task, tmp_path, "dev").examples
        scores = kind.evaluate(read_predictions(tmp_path / "p", kind, examples, 0))
        assert {scores[name] for name in ("f1", "token_accuracy", "non_o_accuracy")} == {100.0}


RACE = '{"article": "a", "questions": ["q"], "options": [["x", "y"]], "answers": ["B"]}'
GOLD = {
    "sst2": ("dev.tsv", "sentence\tlabel\na\t1\nb\t0\n"),
    "rte": ("dev.tsv", "sentence1\tsentence2\tclass\na\tb\t1\n"),
    "stsb": ("dev.tsv", "sentence1\tsentence2\tscore\na\tb\t1\n"),
    "squad2": ("dev-v2.0.json", json.dumps(squad(ANSWERABLE, {"a": ["red car"], "b": []}))),
    "race_high": ("dev/high/1.txt", RACE),
    "conll2003": ("eng.testa", "EU NNP I-NP I-ORG\n. . O O\n"),
    "cluener": ("dev.json", '{"text": "李明", "label": {}}'),
}
TABLE = "index\tprediction\n"


@pytest.mark.parametrize(
    ("task", "predictions", "message"),
    [
        ("sst2", "0\t1\n1\t0\n", "p:1: no column 'index'"),
        ("sst2", f"{TABLE}0\t1\n", "p: no prediction for the row at dev.tsv:3 (id '1')"),
        ("sst2", f"{TABLE}0\t1\n0\t1\n", "p:3: the id '0' occurs twice"),
        ("sst2", f"{TABLE}0\t1\n1\t0\n2\t1\n", "p:4: the task's files have no row with the id '2'"),
        ("sst2", f"{TABLE}0\t1\t1\n", "p:2: 3 fields instead of 2"),
        ("sst2", f"{TABLE}0\tA\n", "p:2: the label 'A'"),
        ("sst2", b"index\tprediction\n0\t\xe9\n", "p:2: not UTF-8"),
        ("rte", f"{TABLE}0\t1\n", "dev.tsv:1: no column 'label'"),
        ("stsb", f"{TABLE}0\tnan\n", "p:2: the score 'nan'"),
        ("squad2", '{"a": "x"}', "p: question 'b' has no prediction"),
        ("squad2", '{"a": 3}', "p, a: the answer is not a text"),
        ("squad2", "[]", "p: not a JSON object"),
        ("race_high", '{"high/2-0": "A"}', "p: has no id of the task's examples"),
        ("race_high", '{"high/1-0": "C"}', "p, high/1-0: the answer 'C'"),
        ("conll2003", "EU O\n. O\n\nx O\n", "p:4: the task's files have no row with the id '1'"),
        ("conll2003", "US O\n. O\n", "p:1: the tokens of this sentence are not those at eng.testa:1"),
        ("conll2003", "EU X-P\n. O\n", "p:1: the tag 'X-P'"),
        ("cluener", '{"id": 0, "label": 1}', "p:1: 'label' is not of the form"),
        ("cluener", '{"label": {}}', "p:1: no key 'id'"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path: Path, task: str, predictions: str | bytes, message: str) -> None:
    file, gold = GOLD[task]
    write(tmp_path / file, gold)
    done = call(main, task, str(write(tmp_path / "p", predictions)), "--data", str(tmp_path))
    assert_one_line_error(done._replace(stderr=done.stderr.replace(f"{tmp_path}/", "")), message)


def test_options_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    write(tmp_path / GOLD["cluener"][0], GOLD["cluener"][1])
    entities, predictions = write(tmp_path / "e", '{"id": 0, "label": {}}\n'), write(tmp_path / "p", TABLE)
    for task, options, message in (
        ("sst2", ["--metric", "f1"], "metric: 'f1'"),
        ("sst2", ["--split", "test"], "--split: "),
        ("cluener", ["--metric", "conlleval"], f"{entities}:1: has entities"),
        ("bleu", [], "no task 'bleu'"),
    ):
        path = entities if task == "cluener" else predictions
        done = call(main, task, str(path), "--data", str(tmp_path), *map(str, options))
        assert_one_line_error(done, message)
