"""Commands of the project, run in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from reader.text.text_files import TextDigest, TextFiles

ROOT = Path(__file__).resolve().parents[2]


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a Python command in the checkout, its output captured."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def digest_of(text: TextFiles) -> str:
    """The digest of a text that has been read to its end."""
    digest = TextDigest(text.paths, text.text_field)
    digest.add(text.paths, text.block_digests)
    return digest.result()


def build(*arguments: str) -> None:
    """`python -m reader.build`, which must succeed."""
    done = python("-m", "reader.build", *arguments)
    assert done.returncode == 0, done.stderr


def kill_when(arguments: list[str], there: Callable[[], object]) -> None:
    """Start a Python command, and kill it and its children as soon as something is there (or it has ended)."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline and not there():
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
