"""Checkpoints written by a thread: one at a time, refusals of the system are no errors until the end."""

from __future__ import annotations

import threading
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from ernie_gram.run import checkpoint
from ernie_gram.run.background_save import BackgroundSaver
from reader.errors import InputError, SystemRefusedError

MODEL = {"w": np.ones(3, np.float32)}


def state(step: int) -> checkpoint.State:
    return checkpoint.State(step, 8 * step, 0.1, {}, {})


def test_the_next_save_waits_for_the_one_before(tmp_path: Path) -> None:
    gate, lines = threading.Event(), []
    saver = BackgroundSaver(tmp_path, 2, gate.wait, lines.append)  # type: ignore[arg-type]
    saver.save(state(1), MODEL, {})
    assert lines == []
    assert checkpoint.checkpoints(tmp_path) == []
    second = threading.Thread(target=saver.save, args=(state(2), MODEL, {}))
    second.start()
    second.join(0.1)
    assert second.is_alive()
    gate.set()
    second.join()
    saver.finish()
    assert lines == [f"saved {tmp_path / 'step_1'}", f"saved {tmp_path / 'step_2'}"]
    for path in checkpoint.checkpoints(tmp_path):
        checkpoint.verify(path)


def test_what_the_system_refuses_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    saver = BackgroundSaver(tmp_path, 2, None, print)
    with monkeypatch.context() as patched:
        refuse = Mock(side_effect=OSError(28, "No space left"))
        patched.setattr(checkpoint, "save_safetensors", refuse)
        saver.save(state(1), MODEL, {})
        saver.save_best(state(1), MODEL)
        saver.wait()
        warnings = capsys.readouterr().err.splitlines()
        starts = [f"warning: {name} is not saved: " for name in ("step_1", "best")]
        assert [line.startswith(start) for line, start in zip(warnings, starts, strict=True)] == [True] * 2
        with pytest.raises(SystemRefusedError, match="No space left"):
            saver.finish()
        assert refuse.call_count == 3
        # The best model was tried again, but what was said of it is not repeated; of a new one it is.
        assert capsys.readouterr().err == ""
        saver.save_best(state(2), MODEL)
        saver.wait()
        assert capsys.readouterr().err.splitlines() == warnings[1:]
        assert list(tmp_path.iterdir()) == []
    saver.save(state(2), MODEL, {})
    saver.finish()
    assert checkpoint.best_step(tmp_path) == 2
    assert [path.name for path in checkpoint.checkpoints(tmp_path)] == ["step_2"]


def test_other_errors_are_raised_by_the_next_call(tmp_path: Path) -> None:
    saver = BackgroundSaver(tmp_path, 2, None, print)
    saver.save(state(1), MODEL | {"b": np.array([1, np.inf], np.float32)}, {})
    with pytest.raises(InputError, match="step_1: not written, b holds numbers that are not finite"):
        saver.save(state(2), MODEL, {})
    assert checkpoint.checkpoints(tmp_path) == []
