"""Which finished parts a stopped job can reuse."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from reader.errors import InputError
from reader.system.output_files import resumable_folder


def stop_job(output: Path, plan: dict[str, int], error: BaseException) -> None:
    """Run a job that finishes one part and then raises an error."""

    def job() -> None:
        with resumable_folder(output, plan) as folder:
            (folder / "part").mkdir()
            raise error

    with pytest.raises(type(error)):
        job()


@pytest.mark.parametrize("error", [InputError("--top"), KeyboardInterrupt()])
def test_a_stopped_job_is_resumed(tmp_path: Path, error: BaseException) -> None:
    stop_job(tmp_path / "out", {"a": 1}, error)
    with resumable_folder(tmp_path / "out", {"a": 1}) as folder:
        assert (folder / "part").is_dir()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_for_one_plan_and_one_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stop_job(tmp_path / "out", {"a": 1}, KeyboardInterrupt())
    assert capsys.readouterr().err == ""
    with resumable_folder(tmp_path / "out", {"a": 2}) as folder:
        assert not (folder / "part").exists()
    assert f"note: {tmp_path}/out: starts anew; a stopped job had another text" in capsys.readouterr().err
    with resumable_folder(tmp_path / "out", {}) as folder:
        with (
            pytest.raises(InputError, match="out: is being written by process"),
            resumable_folder(tmp_path / "out", {}),
        ):
            pass
        assert folder.is_dir()


def test_a_folder_that_is_being_removed_is_not_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill during the removal leaves a partial folder, under another name."""

    def killed(folder: Path, ignore_errors: bool) -> None:
        if folder.exists():
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(shutil, "rmtree", killed)
        with resumable_folder(tmp_path / "output", {"a": 1}) as folder:
            (folder / "part").mkdir()
    with resumable_folder(tmp_path / "output", {"a": 1}) as folder:
        assert [path.name for path in folder.iterdir()] == ["plan.json"]
    assert list(tmp_path.iterdir()) == []
