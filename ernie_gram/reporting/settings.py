"""The settings of runs side by side: those that differ first, all of them folded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ernie_gram.reporting.markup import Cell, Html, breakable, element, folded, joined, section, table
from ernie_gram.reporting.runs import OWN, Group, runs_of


def as_written(value: Any) -> str:
    """Return a setting as it is written in YAML and on the command line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def settings_part(groups: Sequence[Group], anchor: str) -> Html:
    """Return the section with the settings of some groups of runs."""
    keys = list(dict.fromkeys(key for run in runs_of(groups) for key in run.settings if key not in OWN))
    shown = [{key: as_written(value) for key, value in group.runs[0].settings.items()} for group in groups]
    rows = {key: [settings.get(key, "") for settings in shown] for key in keys}
    of_groups = [[as_written(run.settings.get("seed")) for run in group.runs] for group in groups]
    seeds: list[str | Cell] = ["seed", *map(", ".join, of_groups)]
    differing: list[list[str | Cell]] = [
        [breakable(key), *map(breakable, rows[key])] for key in keys if len(set(rows[key])) > 1
    ]
    if len({seed for of_group in of_groups for seed in of_group}) > 1:
        differing.insert(0, seeds)
    head = ["setting", *(group.label for group in groups)]
    parts: list[str] = []
    if len(groups) > 1:
        what = "The settings in which the runs differ:" if differing else "The runs have the same settings."
        parts += [element("p", what, class_="soft"), *([table(head, differing)] if differing else [])]
    bodies: dict[str, list[list[str | Cell]]] = {}
    for key in (*keys, "seed"):
        name, _, last = key.rpartition(".")
        body = bodies.setdefault(name, [[Cell(name or "run", style="heading"), *("" for _ in groups)]])
        body.append([breakable(last), *map(breakable, rows[key])] if key != "seed" else seeds)
    kind = "runs" if all(len(group.runs) == 1 for group in groups) else "groups of runs"
    summary = joined(["All settings of ", "this run" if len(groups) == 1 else f"these {len(groups)} {kind}"])
    return section("Settings", anchor, *parts, folded(summary, table(head, *bodies.values())), level=3)
