"""Models answer lines with vectors, and name bad lines: `infer`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tqdm import tqdm

from ernie_gram.api import Model
from ernie_gram.formats.registry import write_model
from ernie_gram.infer import main as infer_main
from tests.support.commands import Done, assert_one_line_error, call
from tests.support.exported_models import random_model, random_sentence
from tests.support.small_model import TOKENS

PAIRS = {"use_sentence_embedding": True, "use_pooler": True, "use_relative_position": False}


def written(folder: Path, **changes: Any) -> Path:
    write_model(random_model(None, vocab_size=TOKENS, **{**PAIRS, **changes}), folder, "ernie_gram")
    return folder


@pytest.fixture(scope="module")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("encoder") / "model")


def infer(*arguments: object, stdin: bytes = b"") -> Done:
    return call(infer_main, *map(str, arguments), stdin=stdin)


def answers(done: Done, status: int = 0) -> list[dict[str, Any]]:
    assert done.returncode == status, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_vectors_of_texts_and_pairs_are_those_of_the_python_interface(
    encoder_folder: Path, tmp_path: Path, bars: dict[str, tqdm[Any]]
) -> None:
    random = np.random.default_rng(5)
    texts = [tuple(random_sentence(random, int(random.integers(2, 9))) for _ in range(1 + i % 2)) for i in range(40)]
    keys = [("text",), ("text_a", "text_b")]
    records = [dict(zip(keys[len(each) - 1], each, strict=True)) for each in texts]
    plain = "\n".join("\t".join(each) for each in texts).encode()
    # Of this interface, whose numbers are compared with those of the executor in test_api.py.
    model, given = Model.load(encoder_folder), [each[0] if len(each) == 1 else each for each in texts]
    expected = {name: model.encode(given, vectors=name) for name in ("mean", "cls", "pooled")}
    for name, values in expected.items():
        found = answers(infer(encoder_folder, "--vector", name, stdin=plain))
        assert [{**answer, "vector": 0} for answer in found] == [{**record, "vector": 0} for record in records]
        np.testing.assert_allclose([answer["vector"] for answer in found], values, atol=2e-6)
    (tmp_path / "one.txt").write_bytes(plain[:20])
    (tmp_path / "two.txt").write_bytes(b"ba\n \n\n")
    assert len(answers(infer(encoder_folder, "--input", tmp_path / "one.txt", tmp_path / "two.txt"))) > 1
    assert bars["answering"].n == bars["answering"].total == 20 + 6
    one_by_one = answers(infer(encoder_folder, "--batch_size", 1, stdin=plain))
    np.testing.assert_allclose([answer["vector"] for answer in one_by_one], expected["mean"], atol=2e-6)
    done = infer(encoder_folder, "--output", tmp_path / "vectors.npz", stdin=plain + b"\n\n")
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'vectors.npz'}: 40 vectors of 24 numbers\n"), done.stderr
    with np.load(tmp_path / "vectors.npz") as arrays:
        assert arrays["vectors"].dtype == np.float32
        np.testing.assert_allclose(arrays["vectors"], expected["mean"], atol=2e-6)
        assert arrays["names"].tolist() == [f"standard input, line {number}" for number in range(1, 41)]


def test_bad_lines_are_named_and_the_good_ones_answered(encoder_folder: Path, tmp_path: Path) -> None:
    long = b"ba " * 80

    def check(done: Done, good: int, *numbers: int) -> None:
        assert len(answers(done, status=2)) == good
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert len(lines) == len(numbers)
        for line, number in zip(lines, numbers, strict=True):
            assert line.startswith(f"error: standard input, line {number}: "), line

    check(infer(encoder_folder, stdin=b"ba\nbe\tbi\tbo\nbu\t\n" + long + b"\nbe\n"), 2, 2, 3, 4)
    assert len(answers(infer(encoder_folder, "--truncate", stdin=b"ba\n" + long + b"\n"))) == 2
    done = infer(encoder_folder, "--output", tmp_path / "vectors.npz", stdin=b"\xff\n")
    assert done.returncode == 2
    assert list(tmp_path.iterdir()) == []
    # A pair, but the model has one sentence type.
    check(infer(written(tmp_path / "model", sent_type_vocab_size=1), stdin=b"a b\na\tb\n"), 1, 2)


def test_in_batches_of_one_each_line_is_answered_before_the_next_is_read(
    encoder_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order, compute = [], Model.answers

    def lines(_: list[Path]) -> Iterator[tuple[str, bytes]]:
        for text in (b"ba", b"be"):
            order.append("read")
            yield "line", text

    def computed(*arguments: Any) -> Any:
        order.append("answered")
        return compute(*arguments)

    monkeypatch.setattr("ernie_gram.infer.read_lines", lines)
    monkeypatch.setattr(Model, "answers", computed)
    assert len(answers(infer(encoder_folder, "--batch_size", 1, stdin=b"x"))) == 2
    assert order == ["read", "answered"] * 2


def test_invalid_options_give_one_line(encoder_folder: Path, tmp_path: Path) -> None:
    damaged, without = written(tmp_path / "damaged"), written(tmp_path / "without", use_pooler=False)
    (damaged / "model.safetensors").write_bytes(b"")
    other = tmp_path / "other.npz"
    other.touch()
    for arguments, message in (
        ([damaged], f"{damaged / 'model.safetensors'}: "),
        ([encoder_folder, "--input", tmp_path / "missing.txt"], f"{tmp_path / 'missing.txt'}: "),
        ([encoder_folder, "--batch_size", 0], "argument --batch_size: "),
        ([encoder_folder, "--output", tmp_path / "vectors.json"], "--output"),
        ([encoder_folder, "--output", other], f"{other}: "),
        ([encoder_folder, "--input", other, "--output", other, "--overwrite"], f"--output: {other} is also an input"),
        ([encoder_folder, "--overwrite"], "--overwrite: "),
        ([without, "--vector", "pooled"], "--vector pooled: "),
    ):
        assert_one_line_error(infer(*arguments, stdin=b"ba [MASK]"), message)
    assert_one_line_error(call(infer_main, str(encoder_folder)), "standard input: ")
