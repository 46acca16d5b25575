"""The demo: options are checked before the folder of the previous demo is removed."""

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
