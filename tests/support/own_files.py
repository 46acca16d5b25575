"""An assertion about the files that no command may replace."""

from __future__ import annotations

from pathlib import Path

import pytest

from reader.errors import InputError
from reader.system.output_files import check_output_path


def assert_every_file_is_own(folder: Path, kind: str) -> None:
    """Assert that a folder is not empty, and that no path in it may be an output, because it belongs to this kind."""
    paths = list(folder.rglob("*"))
    assert paths
    for path in paths:
        with pytest.raises(InputError, match=f"belongs to the {kind} in "):
            check_output_path("--to", path, True)
