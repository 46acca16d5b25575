"""A model of random numbers is a model folder that every command reads."""

from __future__ import annotations

from pathlib import Path

from ernie_gram.formats.registry import read_model
from tests.benchmarks.random_model import main
from tests.support.commands import call


def test_a_model_of_random_numbers_can_be_read_and_repeated_in_size(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n")
    assert call(main, str(tmp_path / "vocab.txt"), str(tmp_path / "first")).returncode == 0
    again = call(main, "--like", str(tmp_path / "first"), str(tmp_path / "second"), "--seed", "2")
    assert again.returncode == 0, again.stderr
    first, second = (read_model(tmp_path / name) for name in ("first", "second"))
    assert first.config == second.config
    assert first.config.vocab_size == 7
    assert (first.parameters["word_embedding"] != second.parameters["word_embedding"]).all()
