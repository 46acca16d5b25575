"""Conversions of fine-tuned models: what PaddleNLP's classes compute, and programs that compute what the run does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from safetensors.numpy import load_file

from ernie_gram.formats.registry import read_model
from ernie_gram.kernels import products
from ernie_gram.run.run_log import RunLog
from reader.errors import InputError
from tasks.api import FineTuned
from tasks.convert import main
from tasks.kinds.settings import HeadSettings, KindSettings
from tasks.metrics.entities import tag_set
from tasks.predict import main as predict
from tasks.registry import TASKS
from tasks.training.finetuned import LoadedModel, load_finetuned
from tests.support.commands import assert_one_line_error
from tests.support.exported_models import run_exported
from tests.support.finetuned_runs import INPUT, ROWS, made_run, set_null_threshold
from tests.support.model_folders import encoder_output_for
from tests.support.onnx_models import run_onnx
from tests.support.own_tasks import KINDS, KNOWN, own_task
from tests.support.pretended_gpu import on_gpu
from tests.support.static_programs import call_in_scope, fresh_scope
from tests.support.task_files import write_lines
from tests.support.tiny_task import finetune

NUMBER = re.compile(r"-?\d+\.\d+(e-?\d+)?")


def numbers_in(text: str) -> list[float]:
    return [float(found[0]) for found in NUMBER.finditer(text)]


def computed(finetuned: LoadedModel, folder: Path, rows: list[dict[str, Any]]) -> tuple[dict[str, np.ndarray], Any]:
    """Return a batch of some rows, and the scores that a fine-tuned model has for them."""
    from ernie_gram.distributed.world import World
    from tasks.files.own_texts import load_texts
    from tasks.training.network import loaded_scorer

    examples = load_texts(finetuned.task, write_lines(folder / "own.jsonl", *rows), "json", "error").examples
    features = finetuned.kind.encode(examples, finetuned.tokenizer, training=False)
    with fresh_scope() as executor:
        scores = loaded_scorer(finetuned, World(0, 1, executor.place)).scores(features, len(features))
    return features.batch(np.arange(len(features))), scores


@pytest.mark.parametrize("name", ROWS)
def test_a_program_and_a_model_in_onnx_compute_the_scores_of_the_run(name: str, tmp_path: Path) -> None:
    pytest.importorskip("paddle2onnx")
    pytest.importorskip("onnxruntime")
    folder = made_run(tmp_path / "run", KNOWN[name], use_sentence_embedding=name != "stsb")
    for form in ("inference", "onnx"):
        call_in_scope(main, folder, tmp_path / form, "--to", form).ok()
    files = {path.name for path in (tmp_path / "onnx").iterdir()}
    assert files >= {"model.onnx", "onnx.json", "vocab.txt", "task.json"}
    for path in (tmp_path / "inference" / "inference.json", tmp_path / "onnx" / "onnx.json"):
        assert json.loads(path.read_text())["text"]["max_tokens"] == INPUT.max_seq_len
    batch, expected = computed(load_finetuned(folder), tmp_path, ROWS[name])
    for found in (run_exported(tmp_path / "inference", batch), run_onnx(tmp_path / "onnx", batch)):
        np.testing.assert_allclose(found["scores"], expected, atol=1e-4)


def test_the_threshold_of_the_runs_dev_split_is_exported(tmp_path: Path) -> None:
    model = made_run(tmp_path / "run", TASKS["squad2"])
    set_null_threshold(model, -1e9)
    for source in (model, model / "best"):
        program = tmp_path / f"{source.name}_program"
        done = call_in_scope(main, source, program, "--to", "inference")
        assert (done.returncode, "note" in done.stdout) == (0, False)
        assert json.loads((program / "task.json").read_text())["settings"]["span"]["null_threshold"] == -1e9
    unfinished = made_run(tmp_path / "unfinished", TASKS["squad2"])
    done = call_in_scope(main, unfinished, tmp_path / "program", "--to", "inference")
    assert f'note     {tmp_path / "unfinished" / "best"}: has no threshold for "no answer"' in done.stdout


def test_exported_programs_do_not_predict_nor_do_models_that_do_not_fit_their_task(tmp_path: Path) -> None:
    model, folder = made_run(tmp_path / "run", TASKS["rte"]), tmp_path / "program"
    assert call_in_scope(main, model, folder, "--to", "inference").returncode == 0
    command = (predict, folder, "--input", "x", "--output", tmp_path / "out")
    assert_one_line_error(call_in_scope(*command), f"{folder}: is an exported program; give the model")
    slow = patch.object(products, "no_bfloat16", return_value="no AMX")
    with slow, pytest.raises(InputError, match="no AMX"):
        FineTuned.load(model, precision="bfloat16").predict([("a", "b")])
    assert_one_line_error(call_in_scope(main, model, folder, "--to", "paddlenlp"), f"{folder}: exists already")
    own = tmp_path / "run" / "task.json"
    written = own.read_text()
    own.write_text(written.replace('"max_seq_len": 16', '"max_seq_len": 25'))
    done = call_in_scope(predict, tmp_path / "run", *command[2:])
    assert_one_line_error(
        done, f"{model / 'best'}: the model has 24 positions, but task.json settings.input.max_seq_len 25"
    )
    own.write_text(written.replace('"rte"', '"my_task"'))
    done = call_in_scope(predict, tmp_path / "run", *command[2:])
    assert_one_line_error(done, f"{own}: the task 'my_task' is not in the registry")
    assert "give the run of the fine-tuning" in done.stderr


def scores_by_hand(export: Path, batch: dict[str, np.ndarray], by_slot: bool) -> np.ndarray:
    """Return what PaddleNLP's class computes from the files: its one linear layer over the encoder's outputs."""
    model, weights = read_model(export), load_file(export / "model.safetensors")
    assert all(name.startswith(("ernie_gram.", "classifier.")) for name in weights)  # as the class names them
    fields = (batch[name] for name in ("input_ids", "lengths", "sentence_ids"))
    hidden, *pooled = encoder_output_for(model.config, model.parameters, *fields)
    vectors = hidden.reshape(-1, hidden.shape[2])[batch["slots"]] if by_slot else pooled[0]
    scores: np.ndarray = vectors @ weights["classifier.weight"] + weights["classifier.bias"]
    return scores


@pytest.mark.parametrize(
    ("task", "architecture", "labels"),
    [
        ("rte", "ErnieGramForSequenceClassification", ("entailment", "not_entailment")),
        ("moods", "ErnieGramForSequenceClassification", ("glad", "sad", "calm")),
        ("stsb", "ErnieGramForSequenceClassification", ()),
        ("conll2003", "ErnieGramForTokenClassification", tag_set(("PER", "ORG", "LOC", "MISC"))),
        ("squad1", "ErnieGramForQuestionAnswering", ()),
    ],
)
def test_paddlenlp_gets_the_output_layer(tmp_path: Path, task: str, architecture: str, labels: tuple[str, ...]) -> None:
    # Without what PaddleNLP computes differently.
    plain = {"use_relative_position": False, "use_sentence_embedding": True, "layer_norm_eps": 1e-5}
    run, export = made_run(tmp_path / "run", KNOWN[task], **plain), tmp_path / "export"
    assert "lost" not in call_in_scope(main, run, export, "--to", "paddlenlp").ok().stdout
    config = json.loads((export / "config.json").read_text())
    assert config["architectures"] == [architecture]
    assert config.get("id2label", {}) == {str(i): label for i, label in enumerate(labels)}
    problem = {"stsb": ("regression", 1), "moods": ("multi_label_classification", 3)}.get(task, (None, None))
    assert (config.get("problem_type"), config.get("num_labels")) == problem
    assert json.loads((export / "task.json").read_text())["task"] == task
    batch, expected = computed(load_finetuned(run), tmp_path, ROWS.get(task, ROWS["squad2"])[:3])
    found = scores_by_hand(export, batch, by_slot=task in ("conll2003", "squad1"))
    np.testing.assert_allclose(found, expected, atol=2e-6)


def test_the_card_names_the_task_its_class_and_its_scores(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", TASKS["rte"], use_relative_position=True)
    RunLog(folder, True, visualdl=False, start=0, max_steps=20).record("eval", 0, {"score": 0.5, "dev_f1": 0.25})
    refused = call_in_scope(main, folder, tmp_path / "encoder", "--to", "paddlenlp", "--outputs", "encoder")
    assert "relative position" in refused.stderr
    assert "output layer" not in refused.stderr  # nobody asked for it
    for name, options in (("export", ()), ("encoder", ("--outputs", "encoder"))):
        call_in_scope(main, folder, tmp_path / name, "--to", "paddlenlp", "--accept_loss", *options).ok()
        card = (tmp_path / name / "README.md").read_text()
        assert "`rte`" in card
        assert "| score | 0.5 |\n| dev_f1 | 0.25 |\n" in card
        assert ("`ErnieGramForSequenceClassification`; its classes are" in card) == (name == "export")
    # The output layer of such a folder is not read.
    again = call_in_scope(main, tmp_path / "export", tmp_path / "again", "--to", "paddlenlp", "--accept_loss").ok()
    assert "note     left out classifier." in again.stdout
    # A folder of ours has it, but no task.
    call_in_scope(main, folder, tmp_path / "own").ok()
    done = call_in_scope(main, tmp_path / "own", tmp_path / "without", "--to", "paddlenlp", "--accept_loss").ok()
    assert ": the only head that it can hold is that of a task, with --outputs task_scores" in done.stdout
    done = call_in_scope(main, tmp_path / "own", tmp_path / "program", "--to", "inference").ok()
    assert "note     the output layer of a task is left out: there is no task.json" in done.stdout


def test_what_paddlenlp_cannot_hold_is_refused_with_the_reason(tmp_path: Path) -> None:
    first = KindSettings(input=INPUT, head=HeadSettings(sentence_output="cls"))
    transform = {"lm_transform": True, "out_emb_size": 8}
    runs = {
        "multiple choice": made_run(tmp_path / "a", TASKS["race"]),
        "head.sentence_output cls": made_run(tmp_path / "b", TASKS["rte"], first),
        "mask_lm_trans_fc under the output layer": made_run(tmp_path / "c", TASKS["squad1"], **transform),
    }
    for message, folder in runs.items():
        done = call_in_scope(main, folder, tmp_path / "export", "--to", "paddlenlp", "--accept_loss")
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
        assert not (tmp_path / "export").exists()
    lossy = made_run(tmp_path / "d", TASKS["rte"], use_relative_position=True, layer_norm_eps=1e-12)
    refused = call_in_scope(main, lossy, tmp_path / "export", "--to", "paddlenlp")
    done = call_in_scope(main, lossy, tmp_path / "export", "--to", "paddlenlp", "--accept_loss")
    for reason in ("relative position", "layer_norm_eps 1e-12"):
        assert reason in refused.stderr
        assert f"lost     {reason}" in done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_is_learned_and_exported(kind: str, tiny_task: Path, tmp_path: Path, pretended_gpu: list[str]) -> None:
    """Spans are learned in windows. See support/pretended_gpu."""

    def on_devices(main: Any, *arguments: Any) -> None:
        pretended_gpu.clear()
        call_in_scope(main, *arguments).ok()

    task, model = own_task(tmp_path / "data", kind), tmp_path / "run"
    for path in task.parent.glob("*.jsonl"):
        lines = path.read_text().replace('"a b c d"', '"f a b c d"').splitlines()
        # Without its first letter, the other text has another gold value.
        lines[1::2] = [re.sub(r"\ba\b", "h", line) for line in lines[1::2]]
        path.write_text("\n".join(lines))
    settings = [f"--task={task}", f"--paths.data={task.parent}", "--optimizer.epochs=24", "--dropout.hidden=0.1"]
    inputs = ["--input.max_query_len=4", "--input.max_seq_len=8", "--input.doc_stride=2"]
    finetune(tiny_task, model, *settings, *inputs, "--evaluation.every=48").ok()
    best = 100 if kind in ("span", "tagging") else 1
    assert json.loads((model / "result.json").read_text())["score"] > 0.999 * best
    assert set(on_gpu(pretended_gpu)) == {"peak"}
    on_devices(main, model, tmp_path / "program", "--to", "inference")
    assert on_gpu(pretended_gpu) == []
    answers = []
    for device, size in (("gpu", 32), ("cpu", 2)):
        output = tmp_path / f"{device}.jsonl"
        own = ["--input", task.parent / "own.jsonl", "--batch_size", size]
        on_devices(predict, model, *own, "--output", output, "--device", device)
        if device == "cpu":
            assert pretended_gpu == [*["flush_denormals", "set_device cpu"] * 2, "encoder_layers"]
        else:
            assert on_gpu(pretended_gpu) == []
        answers.append(output.read_text())
    assert len(answers[0].splitlines()) == 5
    # On the CPU, other kernels compute it.
    assert NUMBER.sub("", answers[1]) == NUMBER.sub("", answers[0])
    assert numbers_in(answers[1]) == pytest.approx(numbers_in(answers[0]), rel=1e-5)
