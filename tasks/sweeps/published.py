"""The scores that the paper publishes (conf/published), which the tables of sweeps show beside one's own."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from reader.system.installation import CONF
from reader.system.untrusted_text import read_yaml

PUBLISHED = CONF / "published" / "ernie_gram.yaml"
SOURCE = "published by the paper (Xiao et al., NAACL 2021)"


def published_columns(tasks: Collection[str]) -> list[dict[str, Any]]:
    """Return a column of scores, as those of benchmarks.py, for each compared model that has scores of `tasks`."""
    tree = read_yaml(PUBLISHED)
    columns = []
    for model in tree["compared"]:
        scores: dict[str, dict[str, float]] = {}
        tables = []
        for number, table in tree["tables"].items():
            found = zip(table["columns"], table["rows"].get(model, ()), strict=False)
            shown = [(*column.split(), value) for column, value in found if column.split()[0] in tasks]
            tables += [str(number)] if shown else []
            for task, name, value in shown:
                # The paper has the error of some tasks, and the tables of sweeps their accuracy.
                key, is_error = name.replace("error", "accuracy"), name.endswith("error")
                scores.setdefault(task, {})[key] = round(100 - value, 1) if is_error else value
        if scores:
            named = f"table{'s' if len(tables) > 1 else ''} {', '.join(tables)}"
            columns.append({"name": model, "source": f"{SOURCE}, {named}", "scores": scores})
    return columns
