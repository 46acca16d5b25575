"""Print the requirements of the extra `hub`, one per line: PaddleNLP's environment gets these and nothing of ours."""

from __future__ import annotations

from importlib.metadata import requires

if __name__ == "__main__":
    for requirement, _, marker in (line.partition(";") for line in requires("ernie-gram") or []):
        if "hub" in marker:
            print(requirement.strip())
