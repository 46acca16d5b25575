"""The benchmark of fine-tuning: the batches that the other side reads, and the table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.batch_file import read_batches, write_batches
from tests.benchmarks.fine_tuning import main, table_rows
from tests.benchmarks.random_model import main as write_model
from tests.support.commands import call
from tests.support.static_programs import fresh_scope

WORDS = ["a", "b", "c", "d", "e"]
CONTEXT = "a b c d e"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]) + "\n")
    assert call(write_model, str(tmp_path / "vocab.txt"), str(tmp_path / "model")).returncode == 0
    return tmp_path / "model"


def write_rte(folder: Path) -> None:
    """Write pairs of the lengths 2 + 1, 3 + 1, ... words."""
    rows = [f"{i}\t{' '.join(WORDS[: 2 + i % 4])}\te\t{('entailment', 'not_entailment')[i % 2]}" for i in range(40)]
    for split in ("train", "dev"):
        (folder / f"{split}.tsv").write_text("\n".join(["index\tsentence1\tsentence2\tlabel", *rows]) + "\n")


def write_squad(folder: Path) -> None:
    answers = [{"text": "c", "answer_start": 4}]
    questions = [{"id": str(i), "question": "a b", "answers": answers} for i in range(20)]
    data = [{"title": "x", "paragraphs": [{"context": CONTEXT, "qas": questions}]}]
    for split in ("train", "dev"):
        (folder / f"{split}-v1.1.json").write_text(json.dumps({"version": "1.1", "data": data}))


def test_the_batches_have_what_the_other_side_calls_the_model_with(model: Path, tmp_path: Path) -> None:
    write_rte(tmp_path)
    given = ["--data", str(tmp_path), "--model", str(model), "--tasks", "rte", "--steps", "1", "--rows", "33"]
    with fresh_scope():
        done = call(main, *given, "--batches", str(tmp_path / "batches.npz"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["samples"] == 33
    parts = read_batches(tmp_path / "batches.npz")
    assert [len(batch["labels"]) for batch in parts["train"]] == [20, 20]
    for batch in parts["train"]:
        assert batch.keys() == {"input_ids", "attention_mask", "token_type_ids", "labels"}
        assert np.array_equal(batch["attention_mask"], batch["input_ids"] != 0)
    # The first batch of the prediction is there twice: it starts the programs.
    assert [len(batch["input_ids"]) for batch in parts["dev"]] == [32, 32, 1]
    assert all("labels" not in batch for batch in parts["dev"])
    assert [batch["scores"].shape for batch in parts["scores"]] == [(32, 2), (32, 2), (1, 2)]
    assert {name: array.shape for name, array in parts["head"][0].items()} == {"weight": (16, 2), "bias": (2,)}


def test_answers_have_the_slots_of_the_other_side(model: Path, tmp_path: Path) -> None:
    write_squad(tmp_path)
    given = ["--data", str(tmp_path), "--model", str(model), "--tasks", "squad1", "--steps", "1", "--rows", "2"]
    with fresh_scope():
        done = call(main, *given, "--batches", str(tmp_path / "batches.npz"))
    assert done.returncode == 0, done.stderr
    parts = read_batches(tmp_path / "batches.npz")
    # [CLS] a b [SEP] a b c d e [SEP]
    assert set(parts["train"][0]["start_positions"]) == set(parts["train"][0]["end_positions"]) == {6}
    assert parts["dev"][0]["slots"].tolist() == [0, 4, 5, 6, 7, 8, 10, 14, 15, 16, 17, 18]
    assert parts["scores"][0]["scores"].shape == (12, 2)


def test_a_model_that_transformers_cannot_read_is_refused(model: Path, tmp_path: Path) -> None:
    done = call(main, "--data", str(tmp_path), "--model", str(model), "--hf_python", "python")
    assert done.returncode != 0
    assert "give the folder of a BERT" in done.stderr


def test_batches_are_read_as_they_were_written(tmp_path: Path) -> None:
    batches = [{"x": np.full((number, 2), number)} for number in range(12)]
    write_batches(tmp_path / "batches.npz", {"train": batches, "head": [{"y": np.ones(3, np.float32)}]})
    found = read_batches(tmp_path / "batches.npz")
    assert [batch["x"].tolist() for batch in found["train"]] == [batch["x"].tolist() for batch in batches]
    assert found["head"][0]["y"].dtype == np.float32


def test_ratios_are_those_of_medians() -> None:
    def seconds(updates: float) -> dict[str, float]:
        return {"first": 1.0, "updates": updates, "prediction": 3.0}

    rounds = [
        {"ours": seconds(ours), "bf16_products": seconds(2.0) | {"difference": 0.001, "bfloat16": False}}
        for ours in (1.0, 9.0, 2.5)
    ]
    ours, theirs = table_rows("rte", "bfloat16", rounds)
    assert ours == ["rte", "ours", "bfloat16", "1.00", "2.50", "", "3.00", "", ""]
    assert theirs[:3] == ["rte", "transformers", "bf16_products (float32 on this processor)"]
    assert theirs[3:] == ["1.00", "2.00", "1.25", "3.00", "1.00", "1.0e-03"]
