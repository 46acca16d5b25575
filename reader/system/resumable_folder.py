"""A folder next to the output of a long job that keeps finished parts, so that a stopped job can be resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reader.errors import InputError, OptionError, SystemRefusedError, print_note
from reader.system.atomic_files import remove_folder, write_atomically
from reader.system.lock_files import locked_name

PLAN_FILE = "plan.json"


@contextmanager
def resumable_folder(output: Path, plan: dict[str, Any]) -> Iterator[Path]:
    """Yield a folder for the finished parts of the job that creates `output`.

    The folder is removed when the job is finished, or when its text is invalid. If an earlier job was stopped, its
    folder is reused if its plan is equal to `plan`; otherwise its content is removed, with a note. Everything in the
    folder must be written atomically (see atomic_files.py). Raises InUseError if another process runs the same job,
    SystemRefusedError and OSError if the folder cannot be written.
    """
    folder = output.with_name(f".{output.name}.work")
    with locked_name(output, f"{output}: is being written"):
        plan_text = json.dumps(plan, sort_keys=True, indent=1) + "\n"
        path = folder / PLAN_FILE
        if not path.is_file() or path.read_text() != plan_text:
            if path.is_file():
                print_note(f"{output}: starts anew; a stopped job had another text, version, options or memory")
            remove_folder(folder)
            folder.mkdir()
            write_atomically(path, plan_text)
        try:
            yield folder
        except (SystemRefusedError, OptionError):
            raise
        except InputError:
            remove_folder(folder)
            raise
        remove_folder(folder)
