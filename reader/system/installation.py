"""Where this project is, in a checkout or installed: its packages, and the settings that come with it (conf/)."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

# The folder with the packages: the root of a checkout, or site-packages.
PACKAGES = Path(__file__).resolve().parents[2]
# In a wheel, conf/ is a folder of ernie_gram (see setup.py).
_IN_WHEEL = PACKAGES / "ernie_gram" / "conf"
CONF = _IN_WHEEL if _IN_WHEEL.is_dir() else PACKAGES / "conf"


def commit() -> str:
    """Return the commit of the checkout with this code, with "-dirty" if tracked files differ; "" without a checkout.

    site-packages may be inside of the checkout of another project.
    """
    if not (PACKAGES / ".git").exists():
        return ""
    command = ["git", "--no-optional-locks", "-C", str(PACKAGES), "describe", "--always", "--abbrev=40", "--dirty"]
    with suppress(OSError, subprocess.TimeoutExpired):
        # Without tags, the name of a commit is its hash.
        return subprocess.run([*command, "--exclude=*"], capture_output=True, text=True, timeout=20).stdout.strip()
    return ""


def settings_file(path: Path) -> Path:
    """Return the settings file that a user means by a path.

    A path that begins with conf/ refers to the settings of this project, unless the current folder has such a file.
    The same commands therefore work in every folder.
    """
    own = CONF / Path(*path.parts[1:])
    return own if path.parts[:1] == ("conf",) and not path.exists() and own.exists() else path


def is_settings_file(name: str) -> bool:
    """Return whether a name is the path of a YAML file, rather than the name of settings in conf/."""
    return name.endswith((".yaml", ".yml"))


def child_environment(**changes: str) -> dict[str, str]:
    """Return the environment for a process that must import the same packages as this one, with some changes.

    Without PYTHONSAFEPATH (Python 3.11), a folder `reader` or `tasks` in the current folder would come first.
    """
    path = os.pathsep.join(filter(None, [str(PACKAGES), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1", **changes}
