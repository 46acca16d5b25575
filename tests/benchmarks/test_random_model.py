"""A model of random numbers is a model folder, with the sizes of another one."""

from __future__ import annotations

from pathlib import Path

from ernie_gram.formats.registry import read_model
from tests.benchmarks.random_model import main
from tests.support.commands import call


def test_a_model_of_random_numbers_has_the_sizes_of_another_model(tiny_task: Path, tmp_path: Path) -> None:
    call(main, "--like", str(tiny_task / "model"), str(tmp_path / "made")).ok()
    first, second = read_model(tiny_task / "model"), read_model(tmp_path / "made")
    assert first.config == second.config
    assert first.parameters.keys() == second.parameters.keys()
    assert (first.parameters["word_embedding"] != second.parameters["word_embedding"]).all()
