"""The command that scores a file of predictions reads the official files, and refuses those that do not match."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tasks.kinds.catalog import kind_of
from tasks.kinds.settings import KindSettings
from tasks.metrics.catalog import METRICS
from tasks.reading.load import load_split
from tasks.registry import TASKS
from tasks.score import main
from tests.support.commands import call


def write(path: Path, content: Any) -> str:
    """Write a text, or a value as JSON; return the path as text."""
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8", newline="")
    return str(path)


def squad(answers: dict[str, list[str]]) -> dict[str, Any]:
    """Return a file in SQuAD's layout with one paragraph for each question."""
    questions = [
        {"id": key, "question": "", "answers": [{"text": text} for text in texts]} for key, texts in answers.items()
    ]
    return {"data": [{"paragraphs": [{"context": "", "qas": [question]}]} for question in questions]}


def score(*arguments: str, left_out: int = 0) -> dict[str, float]:
    """Return the printed scores; `left_out` rows have no gold value, of which a warning counts the number."""
    done = call(main, *arguments)
    assert done.returncode == 0
    counts = [int(line.split(": ")[2].split(" of ")[0]) for line in done.stderr.splitlines()]
    assert counts == ([left_out] if left_out else [])
    scores: dict[str, float] = json.loads(done.stdout)
    return scores


def error(*arguments: str) -> str:
    done = call(main, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_glue_files_are_scored(tmp_path: Path) -> None:
    # A byte order mark, a lone quotation mark, a line separator inside a field, and CR LF line ends.
    rows = 'Quality\t#1 String\n1\t"a\n0\tb\u2028c\n1\td\n'.replace("\n", "\r\n")
    gold = write(tmp_path / "dev.tsv", "\ufeff" + rows)
    predictions = write(tmp_path / "MRPC.tsv", "index\tprediction\n2\t1\n0\t0\n1\t0\n")
    assert score("accuracy_f1", gold, predictions) == pytest.approx({"accuracy": 2 / 3, "f1": 2 / 3, "average": 2 / 3})
    gold = write(tmp_path / "cola.tsv", "gj04\t1\t\tA.\ngj04\t0\t*\tB.\n")
    predictions = write(tmp_path / "CoLA.tsv", "index\tprediction\n0\t1\n1\t0\n")
    assert score("matthews", gold, predictions, "--column", "2") == {"matthews": 1, "accuracy": 1}
    gold = write(tmp_path / "sts.tsv", "index\tsentence1\tscore\n0\ta\t1.5\n1\tb\t5.0\n")
    predictions = write(tmp_path / "STS-B.tsv", "index\tprediction\n0\t0\n1\t0.25\n")
    assert score("correlation", gold, predictions)["pearson"] == pytest.approx(1)
    gold = write(tmp_path / "mnli.tsv", "label1\tgold_label\nneutral\tentailment\nentailment\tneutral\n")
    predictions = write(tmp_path / "MNLI-m.tsv", "index\tprediction\n0\tentailment\n1\tneutral\n")
    assert score("accuracy", gold, predictions) == {"accuracy": 1}
    assert score("accuracy", gold, predictions, "--column", "label1") == {"accuracy": 0}


LABELS = ["entailment", "-", "neutral", "neutral"]


def test_each_file_of_labels_is_read_by_its_own_suffix(tmp_path: Path) -> None:
    """All combinations give the scores of the rows with a gold label."""
    rows = [{"sentence1": "a", "label": label} for label in LABELS]
    gold_json = write(tmp_path / "dev.json", "".join(json.dumps(row) + "\n" for row in rows))
    gold_tsv = write(tmp_path / "dev.tsv", "a\tlabel\n" + "".join(f"a\t{label}\n" for label in LABELS))
    answers = {0: "entailment", 2: "entailment", 3: "neutral"}
    lines = "".join(json.dumps({"id": key, "label": label}) + "\n" for key, label in answers.items())
    predictions_json = write(tmp_path / "p.jsonl", lines)
    table = "index\tprediction\n" + "".join(f"{key}\t{label}\n" for key, label in answers.items())
    predictions_tsv = write(tmp_path / "p.tsv", table)
    for gold in (gold_json, gold_tsv):
        for predictions in (predictions_json, predictions_tsv):
            assert score("accuracy", gold, predictions, left_out=1) == {"accuracy": pytest.approx(2 / 3)}
        # A row without gold label may have a prediction.
        predictions = write(tmp_path / "all.tsv", f"{table}1\tneutral\n")
        assert score("accuracy", gold, predictions, left_out=1) == {"accuracy": pytest.approx(2 / 3)}


def test_rows_are_found_by_the_ids_of_the_gold_file(tmp_path: Path) -> None:
    gold = write(tmp_path / "dev.json", '{"id": 7, "label": 0}\n{"id": 3, "label": "1"}\n')
    predictions = write(tmp_path / "p.tsv", "index\tprediction\n3\t1\n7\t1\n")
    assert score("accuracy", gold, predictions) == {"accuracy": 0.5}
    assert "dev.json:1: no key 'key', which --id_column names" in (
        error("accuracy", gold, predictions, "--id_column", "key")
    )
    gold = write(tmp_path / "own.tsv", "name\tlabel\nb\t0\na\t1\n")
    predictions = write(tmp_path / "p.tsv", "index\tprediction\na\t1\nb\t0\n")
    assert score("accuracy", gold, predictions, "--id_column", "name") == {"accuracy": 1}
    assert "p.tsv: no row with the id '0' (2 missing)" in error("accuracy", gold, predictions)
    assert "no column id; give its name or number with --id_column" in (
        error("accuracy", gold, predictions, "--id_column", "id")
    )
    gold = write(tmp_path / "own.tsv", "0\tb\n1\ta\n1\n")
    numbers = ["--column", "1", "--id_column", "2"]
    assert "own.tsv:3: 1 columns; the ID is in column 2" in error("accuracy", gold, predictions, *numbers)


def test_scores_and_truth_values_are_read_from_lines(tmp_path: Path) -> None:
    gold = write(tmp_path / "g.json", '{"score": 1}\n{"score": "2.5"}\n{"score": 4.0}\n')
    predictions = write(tmp_path / "p.tsv", "index\tprediction\n0\t0.1\n1\t0.25\n2\t0.4\n")
    assert score("correlation", gold, predictions)["pearson"] == pytest.approx(1)
    gold = write(tmp_path / "g.json", '{"right": true}\n{"right": false}\n')
    predictions = write(tmp_path / "p.jsonl", '{"label": "true"}\n{"label": "true"}\n')
    assert score("accuracy", gold, predictions, "--column", "right") == {"accuracy": 0.5}
    predictions = write(tmp_path / "p.json", '{"score": 1.5}\n{"score": null}\n')
    assert "p.json:2: 'score' is not a number: null" in error("mean_squared_error", gold, predictions)


def test_predictions_may_be_one_json_object_by_id(tmp_path: Path) -> None:
    gold = write(tmp_path / "dev.tsv", "a\tlabel\nx\tA\ny\tB\n")
    path = tmp_path / "predictions.json"
    assert score("accuracy", gold, write(path, {"0": "A", "1": "A"})) == {"accuracy": 0.5}
    assert score("accuracy", gold, write(path, json.dumps({"1": "B", "0": "A"}, indent=1))) == {"accuracy": 1}
    scores = write(tmp_path / "scores.json", '{"score": 1}\n{"score": 2.5}\n')
    assert score("mean_squared_error", scores, write(path, {"0": 1, "1": "2.5"}))["mean_squared_error"] == 0
    # One JSON line is no such object.
    assert score("accuracy", write(tmp_path / "one.tsv", "label\nA\n"), write(path, {"id": 0, "label": "A"})) == (
        {"accuracy": 1}
    )
    for content, message in (
        ({"0": "A"}, "predictions.json: no row with the id '1' (1 missing)"),
        ({"0": "A", "1": None}, "predictions.json: '1' is not a label: null"),
        (
            [{"id": 0, "label": "A"}],
            'predictions.json: a JSON list; give one object {"ID": value, ...} or a line {"id", ',
        ),
        (
            '{"id": 0, "choice": 1}\n{"id": 1, "choice": 0}\n',
            "predictions.json:1: no key 'label' in the object, which has id",
        ),
    ):
        assert message in error("accuracy", gold, write(path, content))


def test_predictions_of_another_form_than_the_gold_values_give_a_warning(tmp_path: Path) -> None:
    gold = write(tmp_path / "dev.jsonl", '{"answer": 0}\n{"answer": 1}\n')
    predictions = write(tmp_path / "predictions.json", {"0": "A", "1": "B"})
    done = call(main, "accuracy", gold, predictions, "--column", "answer")
    assert json.loads(done.stdout) == {"accuracy": 0}
    assert done.stderr == (
        f"warning: no predicted value is among the gold values ({predictions} has 'A', {gold} has '0'); "
        "are they of the same form?\n"
    )


def test_short_lines_of_qqp_need_no_prediction(tmp_path: Path) -> None:
    head = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    gold = write(tmp_path / "dev.tsv", f"{head}9\t1\t2\ta\tb\t1\n8\t1\t2\ta\n7\t1\t2\ta\tb\t0\n")
    predictions = write(tmp_path / "p.tsv", "index\tprediction\n0\t1\n2\t1\n")
    assert score("accuracy_f1", gold, predictions, left_out=1)["accuracy"] == 0.5
    predictions = write(tmp_path / "p.tsv", "index\tprediction\n0\t1\n1\t1\n2\t1\n")
    assert "dev.tsv:3: 4 columns; the label is in column 6" in error("accuracy_f1", gold, predictions)


@pytest.mark.parametrize(
    ("task", "name", "content", "answers"),
    [
        (
            "ocnli",
            "dev.json",
            "".join(json.dumps({"sentence1": "甲", "sentence2": "乙", "label": label}) + "\n" for label in LABELS),
            ["entailment", "contradiction", "neutral"],
        ),
        (
            "mnli",
            "dev_matched.tsv",
            "sentence1\tsentence2\tlabel1\tgold_label\n" + "".join(f"a\tb\tneutral\t{each}\n" for each in LABELS),
            ["entailment", "contradiction", "neutral"],
        ),
        (
            "qqp",
            "dev.tsv",
            "id\tquestion1\tquestion2\tis_duplicate\n1\ta\tb\t1\n2\ta\n3\ta\tb\t0\n4\ta\tb\t0\n",
            ["1", "1", "0"],
        ),
        (
            "csl",
            "dev.json",
            "".join(json.dumps({"id": n, "keyword": ["k"], "abst": "a", "label": "1"}) + "\n" for n in (12, 5, 8)),
            ["1", "0", "1"],
        ),
        ("stsb", "dev.tsv", "sentence1\tsentence2\tscore\na\tb\t1\nc\td\t2.5\ne\tf\t5\n", [0.5, 4.25, 3.0]),
    ],
)
def test_the_predictions_of_a_run_have_the_figures_of_its_evaluation(
    tmp_path: Path, task: str, name: str, content: str, answers: list[Any]
) -> None:
    """Also where rows are left out, or have IDs."""
    from tasks.training.evaluation import write_predictions

    gold = write(tmp_path / name, content)
    split = name.partition(".")[0]
    examples = load_split(TASKS[task], tmp_path, split).examples
    kind = kind_of(TASKS[task], KindSettings())
    predictions = kind.predictions(examples, answers, [{} for _ in answers])
    path = write_predictions(tmp_path, split, predictions)
    assert path.name == f"predictions_{split}.tsv"
    left_out = int(task in ("ocnli", "mnli", "qqp"))
    assert score(TASKS[task].metric, gold, str(path), left_out=left_out) == kind.evaluate(predictions)


def test_squad_files_are_scored(tmp_path: Path) -> None:
    gold = write(tmp_path / "dev.json", squad({"a": ["red car", "car"], "b": []}))
    predictions = write(tmp_path / "predictions.json", {"a": "the car", "b": "x"})
    assert score("squad_v2", gold, predictions)["exact"] == 50
    na_prob = write(tmp_path / "na_prob.json", {"a": 0.1, "b": 0.7})
    scores = score("squad_v2", gold, predictions, "--na_prob", na_prob, "--threshold", "0.5")
    assert (scores["exact"], scores["best_f1"], scores["best_f1_thresh"]) == (100, 100, 0.1)
    chinese = write(tmp_path / "cmrc.json", squad({"a": ["北京"]}))
    assert score("cmrc2018", chinese, write(tmp_path / "p.json", {"a": "北京。"}))["average"] == 100


def test_tag_files_are_scored(tmp_path: Path) -> None:
    # The first token is an ideographic space, which str.split() would drop.
    both = write(tmp_path / "both.txt", "\u3000 O O\n北 B-LOC B-LOC\n\n京 B-LOC O\n")
    expected = {"precision": 100, "recall": 50, "tokens": 3}
    assert {name: value for name, value in score("conlleval", both).items() if name in expected} == expected
    gold = write(tmp_path / "eng.testa", "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\n. . O O\n\n")
    predictions = write(tmp_path / "predictions.txt", "-DOCSTART- O\n\nEU B-ORG\n. O\n")
    assert score("conlleval", gold, predictions)["f1"] == 100


def test_files_of_ids_and_of_spans_are_scored(tmp_path: Path) -> None:
    gold = write(tmp_path / "dev_answer.json", {"#idiom1#": 3, "#idiom2#": 0})
    assert score("accuracy_by_id", gold, write(tmp_path / "p.json", {"#idiom1#": 3}))["accuracy"] == 0.5
    line = json.dumps({"text": "李明", "label": {"name": {"李明": [[0, 1]]}}}, ensure_ascii=False) + "\n"
    gold = write(tmp_path / "dev.json", line * 2)
    predictions = write(tmp_path / "cluener_predict.json", line + '{"label": {}}\n')
    assert score("cluener", gold, predictions)["span_f1"] == pytest.approx(2 / 3)


def test_help_lists_every_metric() -> None:
    done = call(main, "--help")
    assert done.returncode == 0
    assert all(f"  {name} " in done.stdout for name in METRICS)


GOLD_TSV = "sentence\tlabel\na\t1\nb\t0\n"
GOLD_JSON = squad({"a": ["x"], "b": []})


@pytest.mark.parametrize(
    ("metric", "gold", "predictions", "message"),
    [
        ("accuracy", GOLD_TSV, "0\t1\n1\t0\n", 'p:1: the header is not "index<TAB>prediction"'),
        (
            "accuracy",
            GOLD_TSV,
            "index\tprediction\n0\t1\n",
            "p: no row with the id '1' (1 missing); rows without IDs are",
        ),
        ("accuracy", GOLD_TSV, "index\tprediction\n0\t1\n0\t1\n", "p:3: the id '0' occurs twice"),
        ("accuracy", GOLD_TSV, "index\tprediction\n0\t1\n1\t0\n2\t1\n", "g: no row with the id '2' (1 missing); "),
        ("accuracy", GOLD_TSV, "index\tprediction\n0\t1\t1\n", "p:2: not an index and a prediction"),
        ("accuracy", "sentence\tclass\na\t1\n", "index\tprediction\n0\t1\n", "give its name or number with --column"),
        ("accuracy", "sentence\tlabel\na\n", "index\tprediction\n0\t1\n", "g:2: 1 columns; the label is in column 2"),
        ("accuracy", "", "index\tprediction\n", "g: the first line has no column any of gold_label"),
        ("accuracy", "label\n", "index\tprediction\n", "the gold data is empty"),
        ("correlation", "score\nhigh\n", "index\tprediction\n0\t1\n", "g:2: 'high' is not a number"),
        ("correlation", "score\n1\n", "index\tprediction\n0\tnan\n", "the prediction of row 0 (counted from 0) is nan"),
        ("squad_v2", GOLD_JSON, {"a": "x"}, "question 'b' has no prediction"),
        ("squad_v1", GOLD_JSON, {"a": "x"}, "question 'b' has no answer in the gold data"),
        (
            "squad_v1",
            {"data": [{"paragraphs": [{}]}]},
            {},
            "g, data[0].paragraphs[0]: no list 'qas'",
        ),
        (
            "squad_v1",
            {"data": squad({"a": ["x"]})["data"] * 2},
            {},
            "g, data[1].paragraphs[0].qas[0] (id a): the ID 'a' occurs twice",
        ),
        (
            "squad_v1",
            json.dumps(squad({"a": ["x"]})).replace('"text"', '"txt"'),
            {},
            "(id a): the answers are not objects",
        ),
        ("squad_v1", GOLD_JSON, {"a": 3}, "p: the value of 'a' is not a text: 3"),
        ("squad_v1", GOLD_JSON, ["x"], 'p: not a JSON object {"ID": value, ...}'),
        ("squad_v1", GOLD_JSON, '{"a":\n x}', "p:2: not JSON"),
        ("squad_v1", GOLD_JSON, '{"a": ' + "9" * 5000 + "}", "p: not JSON"),
        ("conlleval", "a B-X\n", "a B-X\n\nb O\n", "2 sentences of predictions for 1 sentence"),
        ("conlleval", "a B-X\n", "b B-X\n", "p:1: the tokens of this sentence are not those at"),
        ("conlleval", "a B-X\n", "a\n", "p:1: a sentence with a bad line 1: too few fields in 'a'"),
        ("conlleval", "a X\n", "a O\n", "tag 'X' of token 0"),
        (
            "cluener",
            '{"label": {}}\n',
            '{"label": {"name": {"a": [[0]]}}}\n',
            "p:1: 'label' is not of the form {type: {text: [[first, last], ...]}}",
        ),
        ("cluener", '{"label": {}}\n', "[]\n", "p:1: expected a JSON object"),
        ("race", {"high/1": "A"}, {"high/1": None}, "p: the value of 'high/1' is not a label: null"),
        ("bleu", "", "", "invalid choice: 'bleu'"),
    ],
)
def test_files_that_cannot_be_scored_are_refused(
    tmp_path: Path, metric: str, gold: Any, predictions: Any, message: str
) -> None:
    line = error(metric, write(tmp_path / "g", gold), write(tmp_path / "p", predictions))
    assert message in line


def test_options_and_files_that_do_not_fit_the_metric_are_refused(tmp_path: Path) -> None:
    gold = write(tmp_path / "g", GOLD_TSV)
    assert "needs a file of predictions" in error("accuracy", gold)
    assert "No such file" in error("accuracy", gold, str(tmp_path / "missing"))
    assert "--threshold has no effect on the metric accuracy" in error("accuracy", gold, gold, "--threshold", "1")
    assert "--column has no effect on the metric squad_v1" in error("squad_v1", gold, gold, "--column", "2")
    assert "--id_column has no effect on the metric squad_v1" in error("squad_v1", gold, gold, "--id_column", "2")
    assert "--threshold needs --na_prob" in error("squad_v2", gold, gold, "--threshold", "1")
    predictions = write(tmp_path / "p", "index\tprediction\n0\t1\n")
    assert "--column: columns are counted from 1" in error("accuracy", gold, predictions, "--column", "0")
    (tmp_path / "latin").write_bytes(b"label\n\xe9\n")
    assert "latin:2: not UTF-8" in error("accuracy", str(tmp_path / "latin"), predictions)
