"""Start a script in two processes."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.commands import ROOT


def launch(script: str, log: Path, *arguments: str) -> list[str]:
    """Return the command that runs a script of the checkout in two processes."""
    return [
        *(sys.executable, "-m", "paddle.distributed.launch", "--nproc_per_node", "2", "--log_dir", str(log)),
        *(str(ROOT / script), *arguments),
    ]
