"""Each form writes what its benchmark asks for, and the scorer of files gives the scores of the evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reader.errors import InputError
from tasks.data.examples import Example, Place
from tasks.kinds.base import Predictions
from tasks.kinds.catalog import kind_of
from tasks.kinds.sentences import SentenceExample
from tasks.kinds.settings import KindSettings
from tasks.kinds.task import Task
from tasks.metrics.metric import Scores
from tasks.reading.load import load_split
from tasks.registry import TASKS
from tasks.score import main
from tasks.submissions.catalog import FORMS, form_of, submission_files
from tests.support.commands import call
from tests.support.task_files import write, write_json, write_lines


def submit(
    task: Task, split: str, folder: Path, answers: list[Any], details: Any = None, null_threshold: float | None = None
) -> dict[str, bytes]:
    """Return the files of a submission for the split in a folder."""
    examples = load_split(task, folder, split).examples
    details = details or [{} for _ in answers]
    return submission_files(Predictions(task, examples, answers, details, null_threshold=null_threshold), split)


def scores_of(task: Task, split: str, folder: Path, for_metric: Any, **options: Any) -> Scores:
    """Return the scores of the evaluation."""
    examples = load_split(task, folder, split).examples
    return kind_of(task, KindSettings()).evaluate(Predictions(task, examples, (), (), for_metric, options))


def score(*arguments: Any, warnings: int = 0) -> Scores:
    """Return what the command tasks.score prints, with this number of warnings."""
    done = call(main, *map(str, arguments))
    assert (done.returncode, done.stderr.count("warning: "), done.stderr.count("\n")) == (0, warnings, warnings)
    scores: Scores = json.loads(done.stdout)
    return scores


def test_every_form_is_that_of_a_task() -> None:
    assert {form_of(task).name for task in TASKS.values()} == set(FORMS)
    assert all(name == form.name and form.description for name, form in FORMS.items())


@pytest.mark.parametrize(
    ("task", "split", "name"),
    [
        ("cola", "test", "CoLA.tsv"),
        ("sst2", "test", "SST-2.tsv"),
        ("stsb", "test", "STS-B.tsv"),
        ("mnli", "test_matched", "MNLI-m.tsv"),
        ("mnli", "dev_mismatched", "MNLI-mm.tsv"),
        ("mnli", "diagnostic", "AX.tsv"),
        ("mrpc", "test", "MRPC.tsv"),
        ("qqp", "test", "QQP.tsv"),
        ("qnli", "test", "QNLI.tsv"),
        ("rte", "test", "RTE.tsv"),
        ("wnli", "test", "WNLI.tsv"),
        ("squad1", "dev", "predictions.json"),
        ("dureader_robust", "test", "predictions.json"),
        ("afqmc", "test", "afqmc_predict.json"),
        ("tnews", "test", "tnews11_predict.json"),
        ("tnews", "test1.0", "tnews10_predict.json"),
        ("iflytek", "test", "iflytek_predict.json"),
        ("cmnli", "test", "cmnli_predict.json"),
        ("ocnli", "test", "ocnli_50k_predict.json"),
        ("csl", "test", "csl_predict.json"),
        ("cluewsc2020", "test", "cluewsc11_predict.json"),
        ("cluewsc2020", "test1.0", "cluewsc10_predict.json"),
        ("cmrc2018", "test", "cmrc2018_predict.json"),
        ("c3", "test", "c311_predict.json"),
        ("c3", "test1.0", "c310_predict.json"),
        ("chid", "test", "chid11_predict.json"),
        ("chid", "test1.0", "chid10_predict.json"),
        ("cluener", "test", "cluener_predict.json"),
        ("conll2003", "test", "conll2003_test.txt"),
        ("imdb", "test", "imdb_test.tsv"),
    ],
)
def test_files_have_the_names_that_benchmarks_ask_for(task: str, split: str, name: str) -> None:
    assert form_of(TASKS[task]).file_name(TASKS[task], split) == name


def test_a_table_of_glue_has_every_row_once_in_order(tmp_path: Path) -> None:
    write(tmp_path / "test.tsv", "index\tsentence\n0\tC.\n1\tA.\n2\t\n")
    assert submit(TASKS["cola"], "test", tmp_path, ["1", "0", "1"]) == {
        "CoLA.tsv": b"index\tprediction\n0\t1\n1\t0\n2\t1\n"
    }
    write(tmp_path / "dev.tsv", "question\tsentence\tlabel\na\tb\tentailment\nc\td\tnot_entailment\n")
    answers = ["not_entailment", "not_entailment"]
    [(name, content)] = submit(TASKS["qnli"], "dev", tmp_path, answers).items()
    write(tmp_path / name, content)
    expected = scores_of(TASKS["qnli"], "dev", tmp_path, answers)
    assert score("accuracy", tmp_path / "dev.tsv", tmp_path / name) == expected == {"accuracy": 0.5}


def test_the_diagnostic_set_of_glue_is_predicted_by_mnli(tmp_path: Path) -> None:
    write(tmp_path / "diagnostic" / "diagnostic.tsv", "index\tsentence1\tsentence2\n0\ta\tb\n1\tc\td\n")
    files = submit(TASKS["mnli"], "diagnostic", tmp_path, ["neutral", "entailment"])
    assert files == {"AX.tsv": b"index\tprediction\n0\tneutral\n1\tentailment\n"}


def test_scores_keep_all_their_digits(tmp_path: Path) -> None:
    write(tmp_path / "dev.tsv", "sentence1\tsentence2\tscore\na\tb\t1\nc\td\t2.5\ne\tf\t5\n")
    answers = [0.1234567890123, 2.7, 5.3]
    content = submit(TASKS["stsb"], "dev", tmp_path, answers)["STS-B.tsv"]
    predictions = write(tmp_path / "STS-B.tsv", content)
    expected = scores_of(TASKS["stsb"], "dev", tmp_path, answers)
    assert score("correlation", tmp_path / "dev.tsv", predictions) == expected


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
    predictions = write(tmp_path / "ocnli_50k_predict.json", content)
    scores = score("accuracy", tmp_path / "dev.json", predictions, warnings=1)
    assert scores == expected == {"accuracy": pytest.approx(2 / 3)}


def test_chid_and_race_are_objects_by_id(tmp_path: Path) -> None:
    write_lines(tmp_path / "dev.json", {"content": ["#idiom1#和#idiom2#"], "candidates": ["甲", "乙", "丙"]})
    gold = write_json(tmp_path / "dev_answer.json", {"#idiom1#": 2, "#idiom2#": 0})
    content = submit(TASKS["chid"], "dev", tmp_path, [2, 1])["chid11_predict.json"]
    assert json.loads(content) == {"#idiom1#": 2, "#idiom2#": 1}
    assert score("accuracy_by_id", gold, write(tmp_path / "p.json", content))["accuracy"] == 0.5
    article = {"article": "a", "questions": ["q"], "options": [["x", "y", "z", "w"]], "answers": ["C"]}
    write_json(tmp_path / "dev" / "high" / "1.txt", article)
    content = submit(TASKS["race_high"], "dev", tmp_path, [2])["predictions.json"]
    assert json.loads(content) == {"high/1-0": "C"}


def test_lines_of_c3_have_the_ids_of_the_questions_and_indices(tmp_path: Path) -> None:
    questions = [{"id": number, "question": "q", "choice": ["x", "y", "z"]} for number in (7, 8)]
    write_json(tmp_path / "test1.1.json", [[["line"], questions, "d-1"]])
    write_json(tmp_path / "test1.0.json", [[["line"], questions[:1], "d-1"]])
    files = submit(TASKS["c3"], "test", tmp_path, [2, 0])
    assert files == {"c311_predict.json": b'{"id": 7, "label": 2}\n{"id": 8, "label": 0}\n'}
    assert submit(TASKS["c3"], "test1.0", tmp_path, [1]) == {"c310_predict.json": b'{"id": 7, "label": 1}\n'}


def squad_file(answers: dict[str, list[str]]) -> dict[str, Any]:
    """Return a file in SQuAD's layout; every answer is in the one context."""
    context = "a red car and a blue 汽车"
    questions = [
        {
            "id": key,
            "question": "q?",
            "is_impossible": not texts,
            "answers": [{"text": text, "answer_start": context.index(text)} for text in texts],
        }
        for key, texts in answers.items()
    ]
    return {"data": [{"paragraphs": [{"context": context, "qas": questions}]}]}


def test_unanswerable_questions_of_squad_have_no_text_and_a_high_probability(tmp_path: Path) -> None:
    gold = write_json(tmp_path / "dev-v2.0.json", squad_file({"a": ["red car"], "b": [], "c": [], "d": ["汽车"]}))
    texts, na_scores, threshold = ["red car", "blue", "blue", "汽车"], [-900.0, 7.5, 2.0, 2.5], 2.25
    answers = ["" if na_score > threshold else text for text, na_score in zip(texts, na_scores, strict=True)]
    details = [{"na_score": na_score} for na_score in na_scores]
    files = submit(TASKS["squad2"], "dev", tmp_path, answers, details, threshold)
    assert list(files) == ["predictions.json", "na_prob.json"]
    assert json.loads(files["predictions.json"]) == {"a": "red car", "b": "", "c": "blue", "d": ""}
    probabilities = json.loads(files["na_prob.json"])
    assert [key for key, value in probabilities.items() if value > 0.5] == ["b", "d"]
    predictions, na_prob = (write(tmp_path / name, content) for name, content in files.items())
    options: dict[str, Any] = {"na_prob": dict(zip("abcd", na_scores, strict=True)), "threshold": threshold}
    for_metric = dict(zip("abcd", texts, strict=True))
    expected = scores_of(TASKS["squad2"], "dev", tmp_path, for_metric, **options)
    for found in (score("squad_v2", gold, predictions), score("squad_v2", gold, predictions, "--na_prob", na_prob)):
        assert {key: found[key] for key in ("exact", "f1", "HasAns_f1", "NoAns_f1")} == {
            key: expected[key] for key in ("exact", "f1", "HasAns_f1", "NoAns_f1")
        }


def test_texts_of_answers_are_written_as_they_are(tmp_path: Path) -> None:
    gold = write_json(tmp_path / "cmrc2018_dev.json", squad_file({"a": ["red car"], "b": ["汽车"]}))
    files = submit(TASKS["cmrc2018"], "dev", tmp_path, ["blue", "汽车"])
    assert "汽车".encode() in files["cmrc2018_predict.json"]
    found = score("cmrc2018", gold, write(tmp_path / "p.json", files["cmrc2018_predict.json"]))
    predictions = {"a": "blue", "b": "汽车"}
    assert found == scores_of(TASKS["cmrc2018"], "dev", tmp_path, predictions)


def test_tag_columns_are_scored_as_conlleval_does(tmp_path: Path) -> None:
    gold = write(tmp_path / "eng.testa", "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\n. . O O\n\nBonn NNP I-NP I-LOC\n\n")
    tags = [["B-ORG", "O"], ["B-PER"]]
    [(name, content)] = submit(TASKS["conll2003"], "dev", tmp_path, tags, [{"tags": row} for row in tags]).items()
    assert content.decode() == "EU B-ORG B-ORG\n. O O\n\nBonn B-LOC B-PER\n\n"
    predictions = write(tmp_path / name, content)
    expected = scores_of(TASKS["conll2003"], "dev", tmp_path, tags)
    assert score("conlleval", predictions) == expected
    # The official file is in IOB1, so single tags differ, but entities do not.
    assert score("conlleval", gold, predictions)["f1"] == expected["f1"]


def test_white_space_is_a_token_of_a_column(tmp_path: Path) -> None:
    write(tmp_path / "test.tsv", "text_a\tlabel\n北\x02 \x02京\tB-LOC\x02O\x02B-LOC\n")
    tags = [["B-LOC", "O", "O"]]
    [(name, content)] = submit(TASKS["msra_ner"], "test", tmp_path, tags, [{"tags": tags[0]}]).items()
    assert content.decode() == "北 B-LOC B-LOC\n_ O O\n京 B-LOC O\n\n"
    assert score("conlleval", write(tmp_path / name, content))["recall"] == 50


def test_cluener_has_the_last_characters_inclusive(tmp_path: Path) -> None:
    gold = write_lines(tmp_path / "dev.json", {"text": "李明在北京", "label": {"name": {"李明": [[0, 1]]}}})
    label = {"name": {"李明": [[0, 1]]}, "address": {"北京": [[3, 4]]}}
    content = submit(TASKS["cluener"], "dev", tmp_path, [label])["cluener_predict.json"]
    assert json.loads(content) == {"id": 0, "label": label}
    assert score("cluener", gold, write(tmp_path / "p.json", content)) == scores_of(
        TASKS["cluener"], "dev", tmp_path, [label]
    )


def test_two_examples_with_one_id_are_refused() -> None:
    examples: list[Example] = [SentenceExample("7", "a", None, None, Place(Path("test.tsv"), line)) for line in (1, 2)]
    predictions = Predictions(TASKS["stsb"], examples, [1.0, 2.0], [{}, {}])
    with pytest.raises(InputError, match=r"test.tsv:2: the id '7' is not unique; it is also at test.tsv:1"):
        submission_files(predictions, "test")


@pytest.mark.parametrize(
    ("gold", "predictions", "message"),
    [
        ([{"label": "1"}], [], "p.json: no row with the id '0' (1 missing)"),
        ([], [{"id": 5, "label": "1"}], "g.json: no row with the id '5' (1 missing)"),
        ([{"label": "1"}], [{"id": 0, "label": None}], "p.json:1: 'label' is not a label: null"),
        ([{"id": 1, "label": "1"}, {"id": 1, "label": "1"}], [], "g.json:2: the id '1' occurs twice"),
    ],
)
def test_lines_that_cannot_be_scored_are_refused(tmp_path: Path, gold: Any, predictions: Any, message: str) -> None:
    files = write_lines(tmp_path / "g.json", *gold), write_lines(tmp_path / "p.json", *predictions)
    done = call(main, "accuracy", *map(str, files))
    assert done.returncode == 2
    assert message in done.stderr
