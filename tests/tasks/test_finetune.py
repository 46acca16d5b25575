"""Fine-tuning from the command line, on a tiny model: learning, files, resuming, several processes, other models."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.parameters import head_shapes
from ernie_gram.formats.registry import read_model, write_model
from ernie_gram.run import checkpoint
from ernie_gram.run.run_log import read_log
from reader.lexicon.lexicon_file import Lexicon, LexiconInfo, NGrams
from reader.tokenization.sentencepiece import SentencePieceVocabulary, train_sentencepiece
from reader.tokenization.wordpiece import WordPieceVocabulary
from tasks.training.finetuned import load_finetuned, read_description
from tests.support import pretended_gpu
from tests.support.commands import ERNIE_GRAM, ROOT, call, kill_when, shell
from tests.support.further_cases import FURTHER
from tests.support.model_folders import BERT, given_bert, random_arrays, random_model
from tests.support.own_tasks import own_task
from tests.support.task_files import squad, write, write_json
from tests.support.tiny_task import DEV_ROWS, TOKENS, TRAIN_ROWS, finetune, options, rows
from tests.tasks.test_predict import predict

PREDICTIONS = "predictions_dev.tsv"


def result_of(output: Path) -> dict[str, object]:
    return json.loads((output / "result.json").read_text())


def training_losses(output: Path) -> list[float]:
    return [record["loss"] for record in read_log(output) if record["kind"] == "train"]


def dev_labels(task: Path) -> list[str]:
    return [line.split("\t")[1] for line in (task / "data" / "dev.tsv").read_text().splitlines()[1:]]


def test_the_model_learns_more_than_the_majority_class_and_its_folder_is_that_of_a_model(
    tiny_task: Path, finetuned: Path
) -> None:
    labels = dev_labels(tiny_task)
    majority = max(Counter(labels).values()) / len(labels)
    result = result_of(finetuned)
    assert result["score"] > majority + 0.2
    assert result["steps"] == {"total": 32, "trained": 32, "chosen": result["steps"]["chosen"], "of_this_process": 32}
    rows = {"rows": TRAIN_ROWS, "examples": TRAIN_ROWS, "left_out": 0, "skipped": 0, "samples": TRAIN_ROWS}
    assert result["rows"] == {
        "train": rows,
        "dev": {**rows, **dict.fromkeys(("rows", "examples", "samples"), DEV_ROWS)},
    }
    model = read_model(finetuned)
    assert model.source == finetuned / "best"
    assert {"cls_out_w", "cls_out_b", "word_embedding"} <= model.parameters.keys()
    assert model.pretraining is None
    for path in (finetuned, finetuned / "best"):
        description = read_description(path)
        assert (description.task.name, description.task.labels) == ("task", ("0", "1"))
        assert description.settings.head.sentence_output == "cls"
        assert description.settings.input.max_seq_len == 16


def test_the_score_is_that_of_the_predictions_and_of_the_best_evaluation(tiny_task: Path, finetuned: Path) -> None:
    lines = [line.split("\t") for line in (finetuned / PREDICTIONS).read_text().splitlines()]
    assert [index for index, _ in lines] == ["index", *map(str, range(DEV_ROWS))]
    right = [predicted == gold for (_, predicted), gold in zip(lines[1:], dev_labels(tiny_task), strict=True)]
    score = result_of(finetuned)["score"]
    assert score == pytest.approx(np.mean(right))
    scores = {record["step"]: record["score"] for record in read_log(finetuned) if record["kind"] == "eval"}
    assert [*scores] == [8, 16, 24, 32]
    assert score == max(scores.values()) == scores[checkpoint.best_step(finetuned)]

    from tasks.score import main

    data = tiny_task / "data"
    done = call(main, str(data / "task.yaml"), str(finetuned / PREDICTIONS), "--data", str(data))
    assert json.loads(done.stdout) == {"accuracy": score}


LAST = ("--optimizer.epochs=1", "--evaluation.every=3", "--evaluation.choose=last")


@pytest.fixture(scope="module")
def last(tiny_task: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of one epoch. Tests must not change it."""
    run = tmp_path_factory.mktemp("last") / "run"
    finetune(tiny_task, run, *LAST).ok()
    return run


def test_the_last_model_predicts_and_evaluations_are_as_set(last: Path) -> None:
    scores = {record["step"]: record["score"] for record in read_log(last) if record["kind"] == "eval"}
    assert [*scores] == [3, 6, 8]
    result = result_of(last)
    assert (result["steps"]["chosen"], result["score"]) == (8, scores[8])
    assert not (last / "best").exists()


def test_a_fine_tuned_model_can_be_fine_tuned_again(tiny_task: Path, finetuned: Path, tmp_path: Path) -> None:
    """Its encoder is taken, and its output layer is drawn: the classes may be other ones."""
    done = finetune(tiny_task, tmp_path / "run", f"--paths.model={finetuned}", "--optimizer.epochs=1").ok()
    assert f"not in {finetuned / 'best'}, drawn: cls_out_b, cls_out_w" in done.stdout
    first = next(record for record in read_log(tmp_path / "run") if record["kind"] == "eval")
    assert first["score"] > 0.8


def test_a_killed_run_resumes_to_the_same_predictions(tiny_task: Path, finetuned: Path, tmp_path: Path) -> None:
    """kill -9 as soon as a first checkpoint is there; all is the same to the bit."""
    output = tmp_path / "run"
    kill_when([*ERNIE_GRAM, "finetune", *options(tiny_task, output)], lambda: checkpoint.checkpoints(output))
    assert not (output / "result.json").exists()
    done = finetune(tiny_task, output)
    assert "resumes from" in done.stdout, done.stderr
    assert (finetuned / PREDICTIONS).read_bytes() == (output / PREDICTIONS).read_bytes()
    for key in ("score", "scores"):
        assert result_of(finetuned)[key] == result_of(output)[key]
    evaluations = [[record for record in read_log(path) if record["kind"] == "eval"] for path in (finetuned, output)]
    assert evaluations[0] == evaluations[1]
    models = [checkpoint.load_model(path / "best") for path in (finetuned, output)]
    assert all(np.array_equal(models[0][name], models[1][name]) for name in models[0])
    assert result_of(output)["steps"]["of_this_process"] < result_of(finetuned)["steps"]["of_this_process"]


def test_micro_batches_are_added_up_to_the_batch(tiny_task: Path, last: Path, tmp_path: Path) -> None:
    """Of 7 or 8 samples each, in micro-batches of at most 3."""
    assert finetune(tiny_task, tmp_path / "run", *LAST, "--trainer.micro_batch=3").returncode == 0
    np.testing.assert_allclose(*map(training_losses, (last, tmp_path / "run")), rtol=1e-4)
    assert (tmp_path / "run" / PREDICTIONS).read_bytes() == (last / PREDICTIONS).read_bytes()


@pytest.mark.parametrize(
    ("environment", "more"),
    [
        pytest.param({"NPROC": "2"}, ["--trainer.micro_batch=3"], id="cpu", marks=FURTHER),
        pytest.param(pretended_gpu.environment(2), [], id="gpus"),
    ],
)
def test_two_processes_from_the_shell_predict_as_one(
    tiny_task: Path, finetuned: Path, tmp_path: Path, environment: dict[str, str], more: list[str]
) -> None:
    """61 and 23 samples: batches of uneven size in training, and 6 batches in evaluation, the last one of 3."""
    arguments = options(tiny_task, tmp_path / "run", "--evaluation.batch_size=5", *more)[1:]
    calls = {pretended_gpu.CALLS: str(tmp_path)}
    command = [str(ROOT / "run_finetune.sh"), str(tiny_task / "data" / "task.yaml"), str(tiny_task / "model")]
    shell(*command, *arguments, LOG_DIR=str(tmp_path / "log"), **environment, **calls).ok()
    assert (tmp_path / "run" / PREDICTIONS).read_bytes() == (finetuned / PREDICTIONS).read_bytes()
    assert result_of(tmp_path / "run")["processes"] == 2
    np.testing.assert_allclose(*map(training_losses, (finetuned, tmp_path / "run")), rtol=1e-3)
    # Written under pretended GPUs only.
    devices = [path.read_text().partition("\n")[0] for path in sorted(tmp_path.glob("?.txt"))]
    assert devices == ([] if "NPROC" in environment else ["set_device gpu:0", "set_device gpu:1"])


def test_the_threshold_of_the_dev_split_is_used_on_other_splits(tiny_task: Path, tmp_path: Path) -> None:
    for name, count in (("train", 12), ("dev", 5), ("test", 7)):
        answers = {f"{name}{i}": ["c d"] if i % 3 != 1 else [] for i in range(count)}
        write_json(tmp_path / f"{name}.json", squad("a b c d e f", answers, question="h g"))
    files = "files: {train: train.json, dev: dev.json, test: test.json}\n"
    text = f"kind: span\nlanguage: en\nlayout: squad\n{files}unanswerable: true\nmetric: squad_v2\n"
    task = write(tmp_path / "spans.yaml", text)
    more = [f"--task={task}", f"--paths.data={tmp_path}", "--optimizer.epochs=1"]
    finetune(tiny_task, tmp_path / "run", *more, "--input.max_query_len=4").ok()
    result = result_of(tmp_path / "run")
    # It has gold answers, but the threshold is not chosen on it, whichever files are there.
    (tmp_path / "dev.json").unlink()
    done = predict(tmp_path / "run", "--data", tmp_path, "--split", "test", "--output", tmp_path / "test.out", "--json")
    assert json.loads(done.stdout.splitlines()[-1]) == result["scores"]["test"]
    for record in map(json.loads, (tmp_path / "test.out").read_text().splitlines()):
        assert (record["answer"] == "") == (record["na_score"] > result["null_threshold"])


WORDPIECE = WordPieceVocabulary(TOKENS, True, "tiny")


def dev_scores(run: Path, data: Path, output: Path) -> Any:
    """Return the scores of the dev split that `ernie-gram predict` prints."""
    done = predict(run, "--data", data, "--split", "dev", "--output", output).ok()
    return json.loads(done.stdout.splitlines()[-1])


def test_a_model_folder_with_sentencepiece_is_fine_tuned(tiny_task: Path, tmp_path: Path) -> None:
    vocabulary = train_sentencepiece([text for text, _ in rows(60, seed=2)], 40, True)
    # The words of Chinese text are those of the corpus.
    counted = LexiconInfo(vocabulary.fingerprint, "jieba", "", {}, {}, 8, 0, 1)
    lexicon = Lexicon(NGrams(["the cat"], np.array([2]), np.array([1.0])), counted)
    given = given_bert(vocabulary, config=replace(BERT, vocab_size=len(vocabulary)), lexicon=lexicon)
    write_model(given, tmp_path / "model", "ernie_gram")
    run = tmp_path / "run"
    finetune(tiny_task, run, f"--paths.model={tmp_path / 'model'}", "--optimizer.epochs=1").ok()
    again = read_model(run).vocabulary
    assert isinstance(again, SentencePieceVocabulary)
    assert again.fingerprint == vocabulary.fingerprint
    assert load_finetuned(run).tokenizer.segmenter == "jieba"
    scores = result_of(run)["scores"]["dev"]
    assert dev_scores(run, tiny_task / "data", tmp_path / "dev.tsv") == scores


# A model with a whole head over tokens, whose transform has a LayerNorm; and one with the transform of a low-rank head,
# and nothing else of it.
TIED = random_model(with_head=True, vocabulary=WORDPIECE, vocab_size=len(TOKENS))
LOW_RANK = random_model(vocabulary=WORDPIECE, vocab_size=len(TOKENS), out_emb_size=8)
TRANSFORM = random_arrays(head_shapes(LOW_RANK.config))
LOW_RANK = replace(LOW_RANK, parameters=LOW_RANK.parameters | TRANSFORM)


@pytest.mark.parametrize(("kind", "given"), [("span", TIED), pytest.param("tagging", LOW_RANK, marks=FURTHER)])
def test_the_transform_of_a_given_model_is_trained(kind: str, given: ModelRecord, tmp_path: Path) -> None:
    write_model(given, tmp_path / "model", "ernie_gram")
    own_task(tmp_path / "data", kind)
    run = tmp_path / "run"
    done = finetune(tmp_path, run, "--input.max_query_len=4", "--optimizer.epochs=1").ok()
    output = {"span": "cls_mrc_out", "tagging": "cls_seq_label_out"}[kind]
    assert f"drawn: {output}_b, {output}_w" in done.stdout
    parameters = read_model(run).parameters
    transform = [name for name in given.parameters if name.startswith("mask_lm_trans")]
    assert len(transform) == {"span": 4, "tagging": 2}[kind]
    assert all(not np.array_equal(parameters[name], given.parameters[name]) for name in transform)
    scores = result_of(run)["scores"]["dev"]
    assert dev_scores(run, tmp_path / "data", tmp_path / "predictions") == scores
