"""Print the requirements of the extra `hub`, one per line: PaddleNLP's environment gets these and nothing of ours."""

from __future__ import annotations

from importlib.metadata import requires


def hub_requirements() -> list[str]:
    """Return the requirements of the extra `hub` of the installed package, without their markers."""
    lines = (line.partition(";") for line in requires("ernie-gram") or [])
    return [requirement.strip() for requirement, _, marker in lines if "hub" in marker]


if __name__ == "__main__":
    print("\n".join(hub_requirements()))
