"""The commit of the checkout that runs."""

from __future__ import annotations

import subprocess
from pathlib import Path
from shutil import which

import pytest

from reader.system import installation


def git(*arguments: str | Path) -> str:
    """Return what a command of git prints, for an author without a name elsewhere."""
    author = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *author, *arguments], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.skipif(not which("git"), reason="needs git")
def test_the_commit_is_that_of_the_own_checkout_or_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "lib"
    own.mkdir()
    (own / "module.py").write_text("1\n")
    git("init", "-q", tmp_path)
    git("-C", tmp_path, "add", ".")
    git("-C", tmp_path, "commit", "-qm", "first")
    git("-C", tmp_path, "tag", "-am", "v", "v1")
    head = git("-C", tmp_path, "rev-parse", "HEAD")
    monkeypatch.setattr(installation, "PACKAGES", tmp_path)
    assert installation.commit() == head
    (own / "module.py").write_text("2\n")
    assert installation.commit() == f"{head}-dirty"
    monkeypatch.setattr(installation, "PACKAGES", own)  # installed inside of another project's checkout
    assert installation.commit() == ""
    monkeypatch.setattr(installation, "PACKAGES", tmp_path)
    monkeypatch.setenv("PATH", "")
    assert installation.commit() == ""
