"""Filling masks with a trained model from the command line: output formats, errors, and the probabilities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tqdm import tqdm

from ernie_gram.fill_mask import main
from ernie_gram.formats.registry import write_model
from reader.tokenization.vocabulary import SPECIAL_TOKENS
from tests.support.commands import Done
from tests.support.exported_models import random_model
from tests.support.small_model import TOKENS
from tests.support.static_programs import call_in_scope


@pytest.fixture(scope="module", params=["explicit", "both", "contiguous"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model of a rung with random parameters; the folder has the rung's name."""
    folder = tmp_path_factory.mktemp("models") / request.param
    write_model(random_model(request.param, vocab_size=TOKENS), folder, "ernie_gram")
    return folder


def fill(*arguments: str, stdin: bytes | None = None) -> Done:
    """Run `ernie-gram fill-mask` in this process; a new one would load Paddle, which takes seconds.

    Texts among the arguments are answered without standard input, which may be closed.
    """
    return call_in_scope(main, *arguments, stdin=stdin)


LINES = b"ba [MASK] be bi [MASK] bo\nbu [MASK]\n\n"


def test_lines_of_standard_input_give_reproducible_probabilities_as_json(
    model: Path, monkeypatch: pytest.MonkeyPatch, bars: dict[str, tqdm[Any]]
) -> None:
    done = fill(str(model), "--json", "--top", "4000", stdin=LINES).ok()
    assert (bars["answering"].unit, bars["answering"].n) == ("B", len(LINES))
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert [first["text"], second["text"]] == LINES.decode().split("\n")[:2]
    assert [len(first["masks"]), len(second["masks"])] == [2, 1]
    for mask in [*first["masks"], *second["masks"]]:
        probabilities = [guess["probability"] for guess in mask]
        assert probabilities == sorted(probabilities, reverse=True)
        # The rest is the probability of special tokens, which are left out.
        assert 0.1 < sum(probabilities) < 1
        assert not {guess["unit"] for guess in mask} & {*SPECIAL_TOKENS}
        has_ngrams = any(" " in guess["unit"] for guess in mask)
        assert has_ngrams == (model.name != "contiguous")
    # A text gets the same probabilities alone, in a batch, and when the command is repeated.
    monkeypatch.chdir(model)
    again = fill(".", "--json", "--top", "4000", "bu [MASK]")
    (alone,) = json.loads(again.stdout)["masks"]
    for one, other in zip(alone[:20], second["masks"][0][:20], strict=True):
        assert one["unit"] == other["unit"]
        assert one["probability"] == pytest.approx(other["probability"], rel=1e-4)
    assert fill(str(model), "--json", "--top", "4000", stdin=LINES).stdout == done.stdout
    only_ngrams = fill(str(model), "--json", "--ngrams", "bu [MASK]")
    assert only_ngrams.stderr.startswith("error: ngrams: ") == (model.name == "contiguous")
    guesses = [guess for line in only_ngrams.stdout.splitlines() for guess in json.loads(line)["masks"][0]]
    assert all(" " in guess["unit"] for guess in guesses)


def test_invalid_input_gives_a_one_line_error(finished: Path, tmp_path: Path) -> None:
    run = str(finished)
    long = " ".join(["word"] * 40) + " [MASK]"
    for arguments, message in (
        ([str(tmp_path / "nowhere"), "[MASK]"], f"{tmp_path / 'nowhere'}: "),
        ([str(tmp_path), "[MASK]"], f"{tmp_path}: "),
        ([run, "--top", "0", "[MASK]"], "argument --top"),
        ([run, long], "text 1: "),
    ):
        assert fill(*arguments).refused().startswith(f"error: {message}")
    with patch("ernie_gram.distributed.device.no_bfloat16", return_value="no AMX"):
        assert fill(run, "a [MASK]", "--precision", "bfloat16").stderr.startswith("error: --precision: ")


def test_bad_texts_are_named_and_the_good_ones_among_them_answered(finished: Path) -> None:
    # More lines than one batch.
    good = [f"{number} is [MASK]" for number in range(20)]
    long = "word " * 40 + "[MASK]"
    stdin = "\n".join([*good[:3], "none", "", long, *good[3:]]).encode() + b"\n\xff [MASK]\nlast [MASK]"
    names = [f"standard input, line {number}: " for number in (4, 5, 6, 24)]
    arguments = ["a [MASK]", "none", "\udcff [MASK]", "b [MASK]"]
    for given, texts, named in (
        ([], [*good, "last [MASK]"], names),
        (arguments, ["a [MASK]", "b [MASK]"], ["text 2: no [MASK] in it", "text 3: not UTF-8 (invalid start byte"]),
    ):
        done = fill(str(finished), "--json", "--top", "1", *given, stdin=stdin)
        assert done.returncode == 2
        assert [json.loads(line)["text"] for line in done.stdout.splitlines()] == texts
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert len(errors) == len(named)
        assert all(line.startswith(f"error: {name}") for line, name in zip(errors, named, strict=True))
