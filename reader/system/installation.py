"""Where this project is, in a checkout or installed: its packages, and the settings that come with it (conf/)."""

from __future__ import annotations

import os
from pathlib import Path

from reader.errors import InputError, similar

# The folder with the packages: the root of a checkout, or site-packages.
PACKAGES = Path(__file__).resolve().parents[2]
# In a wheel, conf/ is a folder of ernie_gram (see setup.py).
_IN_WHEEL = PACKAGES / "ernie_gram" / "conf"
CONF = _IN_WHEEL if _IN_WHEEL.is_dir() else PACKAGES / "conf"


def settings_file(path: Path) -> Path:
    """Return the file of settings that a user means by a path.

    A path that begins with conf/ is one of the settings of this project, unless there is such a file in the current
    folder; so the same commands work everywhere.
    """
    own = CONF / Path(*path.parts[1:])
    return own if path.parts[:1] == ("conf",) and not path.exists() and own.exists() else path


def is_settings_file(name: str) -> bool:
    """Return whether a name is the path of a YAML file, and not the name of something that comes with this project."""
    return name.endswith((".yaml", ".yml"))


def named_settings(name: str, folder: Path, what: str) -> Path:
    """Return the path of a YAML file, or the file with a name in a folder of conf/; raises InputError without one."""
    path = settings_file(Path(name)) if is_settings_file(name) else folder / f"{name}.yaml"
    if not path.is_file():
        known = sorted(each.stem for each in folder.glob("*.yaml"))
        raise InputError(f"{path}: no such {what}; the {folder.name} are {', '.join(known)}{similar(name, known)}")
    return path


def child_environment(**changes: str) -> dict[str, str]:
    """Return the environment for a process that must import the same packages as this one, with some changes.

    Without PYTHONSAFEPATH (Python 3.11), a folder `reader` or `tasks` in the current folder would come first.
    """
    path = os.pathsep.join(filter(None, [str(PACKAGES), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1", **changes}
