"""The demo: its options, and the summary that it prints."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ernie_gram import demo
from ernie_gram.pretraining.config import ObjectiveConfig
from ernie_gram.pretraining.count_baselines import Perplexities
from reader.errors import InputError
from tests.support.commands import ROOT


@pytest.mark.parametrize("steps", [0, -20, 9])
def test_too_few_steps_are_refused_before_the_previous_demo_is_removed(
    monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    removed: list[Path] = []
    monkeypatch.setattr(shutil, "rmtree", lambda path, **_: removed.append(path))
    monkeypatch.setattr(demo, "step", lambda *_, **__: None)
    monkeypatch.setattr(sys, "argv", ["demo", f"--steps={steps}"])
    with pytest.raises(InputError, match=f"--steps: {steps} is too few"):
        demo.main()
    assert removed == []


def test_the_seed_and_the_steps_are_options_of_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[str] = []

    def step(command: str, **_: str) -> None:
        commands.append(command)
        if " pretrain " in command:
            raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    monkeypatch.setattr(demo, "step", step)
    monkeypatch.setattr(sys, "argv", ["demo", "--steps=100", "--seed=3"])
    with pytest.raises(KeyboardInterrupt):
        demo.main()
    options = "--trainer.device cpu --seed 3 --trainer.max_steps 100 --optimizer.warmup_steps 10"
    assert commands[-1] == f"ernie-gram pretrain {demo.CONFIG} {options}"


def test_the_next_command_of_a_step_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    code = "print('made\\nnext: something else')"
    demo.step(f'python -c "{code}"')
    assert capsys.readouterr().out.splitlines()[2:] == ["made"]
    with pytest.raises(InputError, match="failed with status 3"):
        demo.step("python -c exit(3)")


def test_the_summary_compares_the_model_with_counts_and_names_what_the_config_leaves_out() -> None:
    first, last = ({"perplexity": a, "ngram_perplexity": b} for a, b in ((783.2, 8129.7), (224.1, 5483.4)))
    baselines = {"unit frequencies": Perplexities(758.4, 7663.2), "left neighbour": Perplexities(189.0, 2857.3)}
    text = demo.summary(first, last, baselines, ObjectiveConfig(fine_weight=0, rtd_weight=0), 500)
    assert text.splitlines() == [
        "Perplexity over the masked units of 500 held-out sequences, of the model and of counts:",
        "           model: start -> end  unit frequencies  left neighbour",
        "all units           783 -> 224               758             189",
        "  n-grams       8,130 -> 5,483             7,663           2,857",
        "conf/pretrain/demo.yaml leaves out: comprehensive prediction, replaced token detection",
    ]
    assert demo.summary(first, last, baselines, ObjectiveConfig(), 500).endswith("leaves out: nothing")


def test_the_demo_does_not_set_the_number_of_threads_of_the_training() -> None:
    code = "import os, ernie_gram.demo; print('OMP_NUM_THREADS' in os.environ)"
    environment = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
