"""What a stopped job finds again, and what it does not."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from reader.errors import InputError, SystemRefusedError
from reader.system.resumable_folder import work_folder


def leave_behind(output: Path, plan: dict[str, int], error: BaseException) -> None:
    """A job that finishes one thing, and ends with an error."""

    def job() -> None:
        with work_folder(output, plan) as folder:
            (folder / "part").mkdir()
            raise error

    with pytest.raises(type(error)):
        job()


@pytest.mark.parametrize("error", [SystemRefusedError("full"), KeyboardInterrupt()])
def test_a_job_that_was_stopped_goes_on(tmp_path: Path, error: BaseException) -> None:
    leave_behind(tmp_path / "out", {"a": 1}, error)
    with work_folder(tmp_path / "out", {"a": 1}) as folder:
        assert (folder / "part").is_dir()
    assert list(tmp_path.iterdir()) == []


def test_another_plan_begins_anew(tmp_path: Path) -> None:
    leave_behind(tmp_path / "out", {"a": 1}, KeyboardInterrupt())
    with work_folder(tmp_path / "out", {"a": 2}) as folder:
        assert not (folder / "part").exists()


def test_bad_input_leaves_nothing(tmp_path: Path) -> None:
    leave_behind(tmp_path / "out", {"a": 1}, InputError("bad"))
    assert list(tmp_path.iterdir()) == []


def test_two_jobs_may_not_make_the_same_thing(tmp_path: Path) -> None:
    with work_folder(tmp_path / "out", {}) as folder:
        with pytest.raises(InputError, match="another process is making it"), work_folder(tmp_path / "out", {}):
            pass
        assert folder.is_dir()


def test_a_disk_that_refuses_is_told(tmp_path: Path) -> None:
    with pytest.raises(SystemRefusedError, match="No space left"), work_folder(tmp_path / "out", {}):
        raise OSError(28, "No space left on device")
    assert (tmp_path / ".out.work").is_dir()


@pytest.mark.parametrize("error", [None, InputError("bad text")])
def test_nothing_is_taken_up_that_is_being_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: InputError | None
) -> None:
    """A kill in the middle of a removal leaves some of a folder; without its plan nobody goes on with it."""
    plans: list[bool] = []

    def removed(folder: Path) -> None:
        plans.append((tmp_path / ".output.work" / "plan.json").exists())

    monkeypatch.setattr(shutil, "rmtree", removed)
    with suppress(InputError), work_folder(tmp_path / "output", {"a": 1}) as folder:
        for place in range(20):
            (folder / f"{place}").mkdir()
        if error:
            raise error
    assert plans == [False] * 21  # what was finished, and the folder
