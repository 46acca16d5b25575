"""The demo: its options and its commands."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from ernie_gram import demo
from reader.errors import InputError


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
