"""A folder next to the output of a long job that keeps finished parts, so that a stopped job can be resumed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from reader.errors import InputError, OptionError, SystemRefusedError, print_note
from reader.system.atomic_files import write_atomically
from reader.system.lock_files import LOCK_FILE, lock_folder
from reader.system.untrusted_text import json_value

PLAN_FILE = "plan.json"


@contextmanager
def resumable_folder(output: Path, plan: dict[str, Any]) -> Iterator[Path]:
    """Yield a folder for the finished parts of the job that creates `output`.

    The folder is removed when the job is finished, or when its text is invalid. If an earlier job was stopped, its
    folder is reused if its plan is equal to `plan`; otherwise its content is removed, with a note. Everything in the
    folder must be written atomically (see atomic_files.py). Raises InUseError if another process runs the same job,
    SystemRefusedError if the folder cannot be written.
    """
    folder = _work_folder(output)
    try:
        with lock_folder(folder, f"{output}: is being written"):
            plan_text = json.dumps(plan, sort_keys=True, indent=1) + "\n"
            path = folder / PLAN_FILE
            if not path.is_file() or path.read_text() != plan_text:
                if path.is_file():
                    print_note(f"{output}: starts anew; a stopped job had another text, version, options or memory")
                _remove_content(folder)
                write_atomically(path, plan_text)
            try:
                yield folder
            except (SystemRefusedError, OptionError):
                raise
            except InputError:
                _remove_all(folder)
                raise
            _remove_all(folder)
    except OSError as error:
        raise SystemRefusedError(f"{error.filename or folder}: {error.strerror or error}") from error


def stopped_plan(output: Path) -> dict[str, Any] | None:
    """Return the plan of a stopped job that was to create `output`, None if there is none."""
    path = _work_folder(output) / PLAN_FILE
    with suppress(OSError, ValueError):
        plan = json_value(path.read_text())
        return plan if isinstance(plan, dict) else None
    return None


def _work_folder(output: Path) -> Path:
    return output.with_name(f".{output.name}.work")


def _remove_content(folder: Path) -> None:
    """Remove everything in the folder except the lock."""
    # The plan is removed first. If the process is killed during the removal, no later job reuses the partial content.
    (folder / PLAN_FILE).unlink(missing_ok=True)
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry.name != LOCK_FILE:
            entry.unlink()


def _remove_all(folder: Path) -> None:
    _remove_content(folder)
    shutil.rmtree(folder)
