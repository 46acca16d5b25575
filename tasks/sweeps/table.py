"""The table of a sweep: median, best, worst and deviation over the seeds, beside published scores."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import mean, median, stdev
from typing import Any

from reader.system.installation import CONF
from reader.system.untrusted_text import read_yaml
from tasks.sweeps.runs import Record

MISSING = "-"
HEAD = ("score", "runs", "median", "best", "worst", "deviation", "medians of all scores")
# The first number that a result has is its score; the others are those of a pre-training, of which less is better.
SCORES = ("score", "ngram_perplexity", "perplexity")


def table(records: Sequence[Record], tasks: Sequence[str], reported: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown table with a row for each task and each combination of what varies.

    The best median of a task is in bold. The last rows have the mean of the medians of each combination that has scores
    on several tasks, and on as many as any other.

    Args:
        tasks: names, in order; a task without results has a row too. Tasks of other records come after them.
        reported: columns of published scores, see plan.py.
    """
    groups: dict[str, dict[tuple[tuple[str, str], ...], list[Record]]] = {task: {} for task in tasks}
    for record in records:
        groups.setdefault(record["task"], {}).setdefault(tuple(record["varied"].items()), []).append(record)
    keys = list(dict.fromkeys(key for group in groups.values() for varied in group for key, _ in varied))
    rows, means = list[list[str]](), dict[tuple[tuple[str, str], ...], list[float]]()
    for task, group in groups.items():
        published = [_shown(column["scores"].get(task, {}), "g") for column in reported]
        rows += [] if group else [[task, *[""] * (len(keys) + 1), "0", *[MISSING] * 5, *published]]
        found = {varied: _scores(members) for varied, members in group.items()}
        best = max((sign * median(values) for sign, values in found.values() if values), default=None)
        for varied, members in group.items():
            sign, values = found[varied]
            cells = _cells(members, sorted(values, key=lambda value: sign * value))
            if values and "metric" in members[0]:
                means.setdefault(varied, []).append(median(values))
            if len(group) > 1 and values and sign * median(values) == best:
                cells[2] = f"**{cells[2]}**"
            rows.append([task, *(dict(varied).get(key, "") for key in keys), *cells, *published])
    most = max(map(len, means.values()), default=0)
    rows += [
        [f"mean of {most} tasks", *(dict(varied).get(key, "") for key in keys), "", "", f"{mean(values):.2f}"]
        + [""] * (4 + len(reported))
        for varied, values in means.items()
        if len(values) == most > 1
    ]
    head = ["task", *keys, *HEAD, *(column["name"] for column in reported)]
    notes = [f"{column['name']}: {column['source']}." for column in reported]
    lines = ["Scores that are fractions are in percent.", "", *markdown_table(head, rows), "", *notes]
    return "\n".join(lines).rstrip() + "\n"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(cells)} |" for cells in rows)]


def _scores(records: Sequence[Record]) -> tuple[int, list[float]]:
    """Return 1, or -1 if less is better, and the scores of runs with one combination."""
    found = ([record["result"][name] for name in SCORES if name in record["result"]] for record in records)
    return 1 if "metric" in records[0] else -1, [values[0] for values in found if values]


def _cells(records: Sequence[Record], values: Sequence[float]) -> list[str]:
    """Return the cells of HEAD for runs with one combination; `values` has their scores, from worst to best."""
    metric = records[0].get("metric")
    form = ",.4g" if metric is None else ".2f"
    names = dict.fromkeys(key for each in records for key in each["result"] if "." in key or metric is None)
    medians = {key: median(each["result"][key] for each in records if key in each["result"]) for key in names}
    title = metric["chooses"] if metric else next((name for name in SCORES if name in names), "")
    numbers = [f"{each:{form}}" for each in (median(values), values[-1], values[0])] if values else [MISSING] * 3
    deviation = f"{stdev(values):{form}}" if len(values) > 1 else MISSING
    return [title, str(len(records)), *numbers, deviation, _shown(medians, form)]


def _shown(scores: Mapping[str, float], form: str) -> str:
    return ", ".join(f"{key} {value:{form}}" for key, value in scores.items()) or MISSING


PUBLISHED = CONF / "published" / "ernie_gram.yaml"
SOURCE = "published by the paper (Xiao et al., NAACL 2021)"


def published_columns(tasks: Collection[str]) -> list[dict[str, Any]]:
    """Return a column of scores, as those of benchmarks.py, for each compared model that has scores of `tasks`."""
    tree = read_yaml(PUBLISHED)
    columns = []
    for model in tree["compared"]:
        scores: dict[str, dict[str, float]] = {}
        for table in tree["tables"].values():
            for column, value in zip(table["columns"], table["rows"].get(model, ()), strict=False):
                task, name = column.split()
                # The paper has the error of some tasks, and the tables of sweeps their accuracy.
                key, is_error = name.replace("error", "accuracy"), name.endswith("error")
                if task in tasks:
                    scores.setdefault(task, {})[key] = round(100 - value, 1) if is_error else value
        if scores:
            columns.append({"name": model, "source": SOURCE, "scores": scores})
    return columns
