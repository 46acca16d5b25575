"""The demo: its options, and its commands, which are those of the README."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from ernie_gram import demo
from reader.errors import InputError
from tests.support.commands import ROOT
from tests.support.readme import sections


def run_in(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> list[str]:
    """Run the demo in a folder and return its commands, which are not executed, after their variables."""
    ran: list[str] = []

    def step(command: str, **environment: str) -> None:
        ran.append(" ".join([*(f"{key}={value}" for key, value in environment.items()), command]))

    monkeypatch.chdir(folder)
    monkeypatch.setattr(demo, "step", step)
    monkeypatch.setattr(sys, "argv", ["demo", *arguments])
    demo.main()
    return ran


@pytest.mark.parametrize("option", ["--steps=0", "--steps=9", "--seed=-1"])
def test_wrong_options_are_refused_before_the_previous_demo_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    run_in(tmp_path, monkeypatch)
    (tmp_path / "output/demo/train.txt").write_text("a text")
    with pytest.raises(InputError, match=option.partition("=")[0]):
        run_in(tmp_path, monkeypatch, option)
    assert (tmp_path / "output/demo/train.txt").exists()
    ran = run_in(tmp_path, monkeypatch, "--steps=100", "--seed=3", "--processes=4")
    assert sum(each.startswith("NPROC=4 ") and "--seed 3" in each for each in ran) == 2
    assert sum("--trainer.max_steps 100 --optimizer.warmup_steps 10 " in each for each in ran) == 1
    assert sorted(os.listdir(tmp_path / "output/demo")) == ["order.yaml", "own.tsv"]


def test_a_folder_that_is_not_of_a_demo_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "output/demo").mkdir(parents=True)
    (tmp_path / "output/demo/train.txt").write_text("my own text")
    with pytest.raises(InputError, match="not the folder of an earlier demo"):
        run_in(tmp_path, monkeypatch)
    assert os.listdir(tmp_path / "output/demo") == ["train.txt"]


def test_the_commands_and_files_are_those_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = next(section.blocks for section in sections(ROOT / "README.md") if section.anchor == "ten-minutes")
    page = "\n".join(blocks).replace("\\\n", " ").replace("output/first", "output/demo")
    [task] = re.findall(r"<<'END'\n(.*?)END\n", page, re.DOTALL)
    [texts] = re.findall(r"printf '%s\\n' text (.*?) > ", page)
    page = page.replace("./run_pretrain.sh", "ernie-gram pretrain").replace("./run_finetune.sh", "ernie-gram finetune")
    lines = [
        re.sub(r"^DATA=(\S+) (ernie-gram finetune \S+ \S+)", r"\2 --paths.data \1", each) for each in page.split("\n")
    ]
    listed = [" ".join(each.split()) for each in lines if each.startswith(("ernie-gram", "cat output"))]
    ours = [each for each in run_in(tmp_path, monkeypatch) if " plot " not in each]  # a file beside the page
    assert [re.sub(r"^NPROC=2 LOG_DIR=\S+ | --trainer.device cpu", "", each) for each in ours] == listed
    assert (tmp_path / "output/demo/order.yaml").read_text() == task
    rows = (tmp_path / "output/demo/own.tsv").read_text().splitlines()
    assert [rows[0], *(f"'{row}'" for row in rows[1:])] == ["text", *re.findall(r"'.*?'", texts)]
