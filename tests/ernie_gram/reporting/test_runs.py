"""Names and groups of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ernie_gram.reporting.runs import ReportedRun, grouped


def labels(*runs: tuple[str, int, str]) -> list[tuple[str, int]]:
    """Return the labels and sizes of the groups of runs, given by name, seed and a setting."""
    made = [ReportedRun(name, Path(name), {"seed": seed, "x": x, "paths.output": name}, []) for name, seed, x in runs]
    return [(group.label, len(group.runs)) for group in grouped(made)]


@pytest.mark.parametrize(
    ("first", "second", "label"),
    [
        ("explicit_1", "explicit_2", "explicit"),
        ("learning_rate=0.1,seed=1", "learning_rate=0.1,seed=2", "learning_rate=0.1"),
        ("run1", "run12", "run"),
        ("a/run", "b/run", "a/run …"),
    ],
)
def test_a_group_has_what_the_names_have_in_common(first: str, second: str, label: str) -> None:
    assert labels((first, 1, "a"), (second, 2, "a")) == [(label, 2)]


def test_groups_have_equal_settings_different_seeds_and_different_labels() -> None:
    runs = [("r_1", 1, "a"), ("r_2", 2, "a"), ("r_3", 1, "b"), ("r_4", 2, "b"), ("again", 1, "a")]
    assert labels(*runs) == [("r_1", 2), ("r_3", 2), ("again", 1)]
